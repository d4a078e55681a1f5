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
#include "validate/stage/stage_device.h"

namespace interlock::cuda {

/// A second holder of the same bytes: a message over a link that takes no time stays where it is.
Block share(const Block& block);

/// Where a block was used last: on a stream, before an event that may be recorded later.
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
  Block allocate(std::int64_t bytes, MemoryClass memory_class, cudaStream_t stream,
                 const std::string& what);
  /// Whoever takes its bytes next waits for `use`, too.
  void note_use(const Block& block, const LastUse& use);
  /// A holder has used `block` for the last time; the last one frees its bytes.
  void free(Block& block, const LastUse& use);
  void retag(const Block& block, MemoryClass memory_class);
  HeldMemory held() const;

 private:
  /// The last use of bytes that were freed.
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

/// By rank. A block belongs to the memory of its rank, whichever stage holds it.
using GpuMemories = std::vector<std::unique_ptr<GpuMemory>>;

}  // namespace interlock::cuda
