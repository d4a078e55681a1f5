// Hold: keeps a stream from going on until the host has issued what shall run without a gap.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

namespace interlock::cuda {

/// A gate in memory that host and GPU share. A kernel in front of it waits until it is opened, but
/// 20 ms at most: work that is issued behind it may make the host wait for the stream.
class Hold {
 public:
  Hold();
  ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  /// Closes the gate and makes `stream` wait in front of it. REQUIRES: nothing waits there.
  void close(cudaStream_t stream);
  void open();

 private:
  volatile int* opened_ = nullptr;
};

}  // namespace interlock::cuda
