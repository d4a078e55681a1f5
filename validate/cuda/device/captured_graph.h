// CapturedGraph: work that was captured instead of run, ready to be launched again and again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <functional>

namespace interlock::cuda {

class CapturedGraph {
 public:
  /// Captures what `issue` sends to `origin`, and to streams that wait for it and that it waits
  /// for. Everything must have run once before: nothing may be allocated, chosen or loaded here.
  CapturedGraph(cudaStream_t origin, const std::function<void()>& issue);
  ~CapturedGraph();
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  void launch() const;

 private:
  void release() noexcept;

  cudaStream_t origin_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t run_ = nullptr;
};

}  // namespace interlock::cuda
