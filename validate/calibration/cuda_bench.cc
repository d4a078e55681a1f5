// The bench of GPUs: whether there is one to measure.
// SPDX-License-Identifier: Apache-2.0
#include "validate/calibration/bench.h"
#include "validate/executors/cuda_executor.h"

namespace interlock {

std::optional<Bench> cuda_bench(int device, std::string& why) {
  const CudaReport report = look_at_cuda();
  why = report.sentence;
  if (report.state != CudaState::Ready) return std::nullopt;
  const int devices = static_cast<int>(report.devices.size());
  if (device >= devices) {
    why = "there is no GPU " + std::to_string(device) + "; expected 0 to " +
          std::to_string(devices - 1);
    return std::nullopt;
  }
  why = "this version measures processors only; try --device cpu";
  return std::nullopt;
}

}  // namespace interlock
