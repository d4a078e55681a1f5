// CapturedGraph: capture, instantiation, launch.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/device/captured_graph.h"

#include "validate/cuda/kernels/cuda_call.h"

namespace interlock::cuda {

CapturedGraph::CapturedGraph(cudaStream_t origin, const std::function<void()>& issue)
    : origin_(origin) {
  require(cudaStreamBeginCapture(origin, cudaStreamCaptureModeRelaxed), "begin a graph");
  try {
    issue();
  } catch (...) {
    cudaStreamEndCapture(origin, &graph_);
    cudaGetLastError();
    release();
    throw;
  }
  try {
    require(cudaStreamEndCapture(origin, &graph_), "end a graph");
    require(cudaGraphInstantiate(&run_, graph_, 0), "make a graph ready");
    require(cudaGraphUpload(run_, origin), "send a graph");
    require(cudaStreamSynchronize(origin), "send a graph");
  } catch (...) {
    release();
    throw;
  }
}

CapturedGraph::~CapturedGraph() { release(); }

void CapturedGraph::release() noexcept {
  if (run_ != nullptr) cudaGraphExecDestroy(run_);
  if (graph_ != nullptr) cudaGraphDestroy(graph_);
}

void CapturedGraph::launch() const { require(cudaGraphLaunch(run_, origin_), "launch a graph"); }

}  // namespace interlock::cuda
