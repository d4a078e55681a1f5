// The bench of GPUs, which is in the CUDA module; or why there is none.
// SPDX-License-Identifier: Apache-2.0
#include "validate/calibration/bench.h"
#include "validate/executors/cuda_executor.h"

namespace interlock {

std::optional<Bench> cuda_bench(int device, int partitions, std::string& why) {
  const CudaReport report = look_at_cuda();
  why = report.sentence;
  if (report.state != CudaState::Ready) return std::nullopt;
  const int devices = static_cast<int>(report.devices.size());
  if (device >= devices) {
    why = "there is no GPU " + std::to_string(device) + "; expected 0 to " +
          std::to_string(devices - 1);
    return std::nullopt;
  }
  using OpenBench = void (*)(int, int, Bench&);
  const auto open = reinterpret_cast<OpenBench>(find_in_cuda_module("interlock_open_cuda_bench"));
  if (open == nullptr) {
    why = "the CUDA module is of another interlock; build again";
    return std::nullopt;
  }
  Bench bench;
  open(device, partitions, bench);
  return bench;
}

}  // namespace interlock
