// GpuInputs: tokens, features and targets of a whole run, on the device before it begins.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "validate/cuda/stage/gpu_steps.h"
#include "validate/network/job.h"

namespace interlock::cuda {

/// The inputs of one stage for every micro-batch.
class GpuInputs {
 public:
  /// Copies the inputs of `stage` to the current GPU. `loss`: it reads targets.
  GpuInputs(const Job& job, int stage, bool loss);
  ~GpuInputs();
  GpuInputs(const GpuInputs&) = delete;
  GpuInputs& operator=(const GpuInputs&) = delete;

  const std::vector<GpuBatch>& batches() const { return batches_; }
  /// Returns the bytes of the GPU that they take.
  std::int64_t bytes() const { return bytes_; }

 private:
  std::vector<GpuBatch> batches_;
  std::vector<void*> blocks_;
  std::int64_t bytes_ = 0;
};

/// Returns the micro-batches of a whole run.
inline int count_batches(const Program& program) { return program.micro_batches * program.steps; }

}  // namespace interlock::cuda
