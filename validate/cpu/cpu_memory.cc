// Memory of ranks that are threads.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cpu/cpu_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include "base/error.h"

namespace interlock {
namespace {

constexpr int kPoison = 0xff;
constexpr std::int64_t kStep = std::int64_t{16} << 20;  // by which opened addresses grow, in bytes

}  // namespace

std::int64_t addresses_of_rank(std::size_t ranks) {
  constexpr std::int64_t kUnlimited = std::int64_t{1} << 36;
  constexpr std::int64_t kPage = 4096;
  rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  // Half is for the program, its threads' stacks and the data.
  const auto share = static_cast<std::int64_t>(limit.rlim_cur / 2 / ranks) / kPage * kPage;
  return std::clamp(share, kPage, kUnlimited);
}

CpuMemory::CpuMemory(int rank, std::int64_t capacity, bool poison)
    : rank_(rank), capacity_(capacity), poison_(poison), slab_(capacity) {
  void* memory = mmap(nullptr, static_cast<std::size_t>(capacity), PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw Error("cannot reserve memory for device " + std::to_string(rank));
  base_ = static_cast<char*>(memory);
}

CpuMemory::~CpuMemory() { munmap(base_, static_cast<std::size_t>(capacity_)); }

Block CpuMemory::allocate(std::int64_t bytes, MemoryClass memory_class) {
  if (bytes == 0) return {};
  const std::scoped_lock lock(mutex_);
  const std::int64_t offset = slab_.allocate(bytes, memory_class);
  if (offset < 0) {
    throw Error("device " + std::to_string(rank_) + " has no room for " + std::to_string(bytes) +
                " bytes of " + name_of(memory_class));
  }
  open_up_to(slab_.reach());
  Block block = {.rank = rank_, .data = base_ + offset, .offset = offset, .bytes = bytes};
  if (poison_) std::memset(block.data, kPoison, static_cast<std::size_t>(bytes));
  return block;
}

void CpuMemory::open_up_to(std::int64_t end) {
  if (end <= open_) return;
  const std::int64_t more = std::min(capacity_, (end + kStep - 1) / kStep * kStep) - open_;
  if (mprotect(base_ + open_, static_cast<std::size_t>(more), PROT_READ | PROT_WRITE) != 0) {
    throw std::bad_alloc();
  }
  open_ += more;
}

void CpuMemory::free(Block& block) {
  if (!block) return;
  const std::scoped_lock lock(mutex_);
  if (poison_) std::memset(block.data, kPoison, static_cast<std::size_t>(block.bytes));
  slab_.release(block.offset);
  block = {};
}

void CpuMemory::retag(const Block& block, MemoryClass memory_class) {
  if (!block) return;
  const std::scoped_lock lock(mutex_);
  slab_.retag(block.offset, memory_class);
}

HeldMemory CpuMemory::held() const {
  const std::scoped_lock lock(mutex_);
  return {.peak = slab_.peak(),
          .allocated_peak = slab_.allocated_peak(),
          .reach = slab_.reach(),
          .at_peak = slab_.at_peak()};
}

}  // namespace interlock
