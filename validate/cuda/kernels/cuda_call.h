// Turns the status codes of CUDA's libraries into our errors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <string>

namespace interlock::cuda {

/// Throws: Error with `what` and CUDA's own words, unless `status` is success.
void require(cudaError_t status, const char* what);
/// Throws: likewise.
void require(cublasStatus_t status, const char* what);

/// Allocates `bytes` of the current device, to be freed by cudaFree. Throws: Error that names
/// `what` and its size where there is no room.
void* allocate(std::int64_t bytes, const std::string& what);

/// Waits until `device` has done all that it was given; ignores its errors.
void finish_device(int device) noexcept;

/// Makes `device` current as long as it lives, then the one before.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
};

}  // namespace interlock::cuda
