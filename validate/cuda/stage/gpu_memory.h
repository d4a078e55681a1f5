// GpuMemory: what one rank of a run has of a GPU's memory: one allocation, dealt out by a Slab.
// SPDX-License-Identifier: Apache-2.0
//
// The host deals out memory in the order in which it issues work, long before that work runs. Work
// of one stream runs in that order, so a block may follow another at once; where the next user is
// another stream, it waits for an event behind the last one.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "validate/executors/slab.h"
#include "validate/network/job.h"

namespace interlock::cuda {

class GpuMemory;

/// Bytes of a device; of no bytes, nothing. A message over a link that takes no time stays where it
/// is, so that two may hold the same bytes.
struct Extent {
  GpuMemory* memory = nullptr;
  char* data = nullptr;
  std::int64_t offset = -1, bytes = 0;
  std::shared_ptr<int> holders;  // none: one
  explicit operator bool() const { return data != nullptr; }
};

/// A second holder of the same bytes.
Extent share(Extent& extent);

/// Where an extent was used last: on a stream, before an event that may be recorded later.
struct LastUse {
  cudaStream_t stream = nullptr;
  cudaEvent_t behind = nullptr;
};

class GpuMemory {
 public:
  /// `capacity` bytes of the current device. Throws: Error if it does not have them.
  GpuMemory(int rank, std::int64_t capacity, bool poison);
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  /// For what `stream` writes first; `what` is named where there is no room.
  Extent take(std::int64_t bytes, MemoryClass memory_class, cudaStream_t stream,
              const std::string& what);
  /// Whoever takes its bytes next waits for `use`, too.
  void note_use(const Extent& extent, const LastUse& use);
  void release(const Extent& extent) { slab_.release(extent.offset); }
  void retag(const Extent& extent, MemoryClass memory_class);
  HeldMemory held() const;

 private:
  /// The last use of bytes that were given back.
  struct Use {
    std::int64_t begin = 0, end = 0;
    LastUse last;
  };

  int rank_;
  bool poison_;
  Slab slab_;
  char* base_ = nullptr;
  std::vector<Use> uses_;
};

/// A holder has used `extent` for the last time; the last one gives its bytes back.
void give_back(Extent& extent, const LastUse& use);

}  // namespace interlock::cuda
