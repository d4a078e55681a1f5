// GpuMemory: blocks, and who used their bytes last.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/stage/gpu_memory.h"

#include "base/error.h"
#include "validate/cuda/kernels/cuda_call.h"

namespace interlock::cuda {

namespace {

constexpr int kPoison = 0xff;  // makes NaN of fp32 and bf16 alike

}  // namespace

GpuMemory::GpuMemory(int rank, std::int64_t capacity, bool poison)
    : rank_(rank), poison_(poison), slab_(capacity) {
  base_ =
      static_cast<char*>(cuda::allocate(capacity, "the tensors of device " + std::to_string(rank)));
}

GpuMemory::~GpuMemory() { cudaFree(base_); }

Block GpuMemory::allocate(std::int64_t bytes, MemoryClass memory_class, cudaStream_t stream,
                          const std::string& what) {
  if (bytes == 0) return {};
  const std::int64_t offset = slab_.allocate(bytes, memory_class);
  if (offset < 0) {
    throw Error("device " + std::to_string(rank_) + " has no room for " + what + ": " +
                std::to_string(bytes) + " bytes of " + name_of(memory_class) + " beside " +
                std::to_string(slab_.live()) + " of " + std::to_string(slab_.capacity()) +
                "; use smaller or fewer micro-batches, or more devices");
  }
  const std::int64_t end = offset + bytes;
  for (auto use = uses_.begin(); use != uses_.end();) {
    if (use->end <= offset || use->begin >= end) {
      ++use;
      continue;
    }
    if (use->last.stream != stream) {
      require(cudaStreamWaitEvent(stream, use->last.behind), "wait for the last user of memory");
    }
    // Bytes outside the new block keep their last user; the new block frees the others later.
    const Use before = *use;
    use = uses_.erase(use);
    if (before.begin < offset) {
      use = uses_.insert(use, {before.begin, offset, before.last}) + 1;
    }
    if (before.end > end) {
      use = uses_.insert(use, {end, before.end, before.last}) + 1;
    }
  }
  if (poison_) {
    require(cudaMemsetAsync(base_ + offset, kPoison, static_cast<std::size_t>(bytes), stream),
            "poison");
  }
  return {.rank = rank_,
          .data = base_ + offset,
          .offset = offset,
          .bytes = bytes,
          .holders = std::make_shared<int>(1)};
}

void GpuMemory::note_use(const Block& block, const LastUse& use) {
  if (block) uses_.push_back({block.offset, block.offset + block.bytes, use});
}

void GpuMemory::retag(const Block& block, MemoryClass memory_class) {
  if (block) slab_.retag(block.offset, memory_class);
}

HeldMemory GpuMemory::held() const {
  return {.peak = slab_.peak(),
          .allocated_peak = slab_.allocated_peak(),
          .reach = slab_.reach(),
          .at_peak = slab_.at_peak()};
}

void GpuMemory::free(Block& block, const LastUse& use) {
  if (!block) return;
  note_use(block, use);
  if (--*block.holders == 0) slab_.release(block.offset);
  block = {};
}

Block share(const Block& block) {
  ++*block.holders;
  return block;
}

}  // namespace interlock::cuda
