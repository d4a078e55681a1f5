// GpuSteps: runs the steps of a StagePlan on a GPU, as stage_network.h does on a CPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "validate/cuda/device/products.h"
#include "validate/cuda/kernels/kernels.h"
#include "validate/network/stage_plan.h"

namespace interlock::cuda {

/// Memory of kernels that need more than the plan gives them: sums by parts, patches, scores. It
/// grows while nothing is captured, so everything is run once before.
class Scratch {
 public:
  Scratch() = default;
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// At least so many bytes, until the next call. What is issued on `stream` before is done first.
  char* take(std::int64_t bytes, cudaStream_t stream);
  std::int64_t bytes() const { return bytes_; }

 private:
  char* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

/// The part of a device that kernels run on.
struct Engine {
  Lane lane;
  Products* products = nullptr;
  Scratch* scratch = nullptr;
  int planned_sms = 1;  // that products are planned for
};

/// What of a micro-batch is on the device from the start.
struct GpuBatch {
  const std::int32_t *tokens = nullptr, *order = nullptr;  // see Lookup
  const float* features = nullptr;
  const std::int32_t* targets = nullptr;
};

/// What steps work on: the begin of every block that the plan names, and an address for each
/// parameter.
struct GpuTensors {
  std::array<char*, kPlaces> places{};
  const std::vector<char*>* weights = nullptr;
  const std::vector<char*>* gradients = nullptr;
  GpuBatch batch;
  float* loss = nullptr;  // where the loss of the batch goes
  int samples = 1;
  int rows_per_sample = 1;
};

enum class GpuPart : std::uint8_t { All, ButLate, Late };

void run_steps(const Engine& engine, const std::vector<Step>& steps, const GpuTensors& tensors,
               GpuPart part = GpuPart::All);

}  // namespace interlock::cuda
