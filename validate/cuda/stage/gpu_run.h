// GpuRun: a job from its first check to its trace.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/executors/cuda_executor.h"

namespace interlock::cuda {

/// See run_cuda(). REQUIRES: there is a GPU.
void run_job(const Job& job, const CudaOptions& options, const TraceSink& sink, CudaRun& run);

}  // namespace interlock::cuda
