// RunRecord: what a run on GPUs used, gathered when it is over.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reports/result/execution_record.h"
#include "validate/cuda/device/clock_sampler.h"
#include "validate/cuda/stage/gpu_run.h"

namespace interlock::cuda {

/// Returns the GPUs of `rig`, as the sampler of clocks is given them.
std::vector<SampledGpu> sampled_gpus(const Rig& rig);

/// Returns what ran, but for clocks. REQUIRES: `gpu_run` still has its memory.
ExecutionRecord record_of(const Rig& rig, const GpuRun& gpu_run, const CudaOptions& options);

}  // namespace interlock::cuda
