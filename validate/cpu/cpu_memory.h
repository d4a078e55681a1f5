// CpuMemory: what one rank of a run on CPUs has for device memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "validate/executors/slab.h"
#include "validate/stage/stage_device.h"

namespace interlock {

/// Returns the bytes of address space that each of `ranks` may reserve: plenty, or its share of
/// half the process's limit (ulimit -v), which clusters set.
std::int64_t addresses_of_rank(std::size_t ranks);

/// Addresses are reserved, and opened as far as blocks reach: what is not open counts neither as
/// data (ulimit -d) nor as promised memory (vm.overcommit_memory 2). Memory is used as it is
/// touched. May be used from several threads: senders put messages where their receivers are.
class CpuMemory {
 public:
  /// `capacity`: bytes of address space. `poison`: bytes that are allocated or freed are filled
  /// with a pattern that makes NaN of every number, so that a read before the first write, or after
  /// free(), shows in the losses.
  CpuMemory(int rank, std::int64_t capacity, bool poison);
  ~CpuMemory();
  CpuMemory(const CpuMemory&) = delete;
  CpuMemory& operator=(const CpuMemory&) = delete;

  /// Throws: Error where there is no room; std::bad_alloc if the system has none.
  Block allocate(std::int64_t bytes, MemoryClass memory_class);
  void free(Block& block);
  void retag(const Block& block, MemoryClass memory_class);
  HeldMemory held() const;

 private:
  void open_up_to(std::int64_t end);  // a distance from base_

  int rank_;
  std::int64_t capacity_;
  bool poison_;
  mutable std::mutex mutex_;
  Slab slab_;
  char* base_;
  std::int64_t open_ = 0;  // bytes from base_ that may be touched
};

}  // namespace interlock
