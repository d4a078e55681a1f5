// GpuSteps: runs the steps of a StagePlan on a GPU, as cpu_steps.h does on a CPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "validate/cuda/device/products.h"
#include "validate/cuda/kernels/kernels.h"
#include "validate/stage/stage_device.h"

namespace interlock::cuda {

/// Memory of kernels that need more than the plan gives them: sums by parts, patches, scores. It
/// grows while nothing is captured, so everything is run once before.
class Scratch {
 public:
  Scratch() = default;
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// Returns at least `bytes` bytes, until the next call. Work that was issued on `stream` before
  /// is done first.
  char* take(std::int64_t bytes, cudaStream_t stream);
  std::int64_t bytes() const { return bytes_; }

 private:
  char* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

/// The part of a device that kernels run on.
struct KernelContext {
  Stream stream;
  Products* products = nullptr;
  Scratch* scratch = nullptr;
  int planned_sms = 1;  // that products are planned for
};

/// The parts of a micro-batch that are on the device from the start, and the address of its loss.
struct GpuBatch {
  const std::int32_t *tokens = nullptr, *order = nullptr;  // see Lookup
  const float* features = nullptr;
  const std::int32_t* targets = nullptr;
  float* loss = nullptr;
};

void run_steps(const KernelContext& context, const std::vector<Step>& steps,
               const StageTensors& tensors, const GpuBatch& batch, StepPart part = StepPart::All);

}  // namespace interlock::cuda
