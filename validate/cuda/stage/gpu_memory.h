// GpuMemory: what one rank of a run has of a GPU's memory: one allocation, dealt out by a Slab.
// SPDX-License-Identifier: Apache-2.0
//
// The host deals out memory in the order in which it issues work, long before that work runs. Work
// of one stream runs in that order, so a block may follow another at once; where the next user is
// another stream, it waits for an event behind the last one.
//
// Example: stream A read bytes 0 to 512 last, before event e, and they were freed. Stream B gets
// bytes 0 to 256 of them: allocate() makes B wait for e, and keeps {256, 512, A and e}. For stream
// A itself nothing would wait.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "validate/executors/slab.h"
#include "validate/stage/stage_device.h"

namespace interlock::cuda {

/// Returns a second holder of the same bytes: a message over a link that takes no time is not
/// copied.
Block share(const Block& block);

/// The last use of a block: on a stream, before an event that may be recorded later.
struct LastUse {
  cudaStream_t stream = nullptr;
  cudaEvent_t behind = nullptr;
};

class GpuMemory {
 public:
  /// Takes `capacity` bytes of the current device. Throws: Error if it does not have them.
  GpuMemory(int rank, std::int64_t capacity, bool poison);
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  /// Allocates a block that `stream` writes first. Throws: Error that names `what` if there is no
  /// room.
  Block allocate(std::int64_t bytes, MemoryClass memory_class, cudaStream_t stream,
                 const std::string& what);
  /// Makes the next user of the block's bytes wait for `use`, too.
  void note_use(const Block& block, const LastUse& use);
  /// Lets a holder go that used `block` for the last time; the last holder frees its bytes.
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

/// The memories by rank. A block belongs to the memory of its rank, whichever stage holds it.
using GpuMemories = std::vector<std::unique_ptr<GpuMemory>>;

}  // namespace interlock::cuda
