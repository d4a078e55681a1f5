// Turns the status codes of CUDA's libraries into our errors.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/kernels/cuda_call.h"

#include "base/error.h"

namespace interlock::cuda {

void require(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // what is not sticky shall not fail the next call too
  throw Error(std::string("CUDA: ") + what + ": " + cudaGetErrorString(status) + " (" +
              cudaGetErrorName(status) + ")");
}

void require(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(std::string("cuBLASLt: ") + what + ": " + cublasLtGetStatusString(status));
}

void* allocate(std::int64_t bytes, const std::string& what) {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, static_cast<std::size_t>(bytes));
  if (status != cudaErrorMemoryAllocation) {
    require(status, ("memory for " + what).c_str());
    return memory;
  }
  cudaGetLastError();
  std::size_t free = 0, all = 0;
  require(cudaMemGetInfo(&free, &all), "free memory");
  throw Error("the GPU has no room for " + what + ": " + std::to_string(bytes) + " bytes, and " +
              std::to_string(free) + " of " + std::to_string(all) +
              " are free; use smaller or fewer micro-batches, or more devices");
}

void finish_device(int device) noexcept {
  int before = 0;
  cudaGetDevice(&before);
  cudaSetDevice(device);
  cudaDeviceSynchronize();
  cudaSetDevice(before);
}

CurrentDevice::CurrentDevice(int device) {
  require(cudaGetDevice(&before_), "which device is current");
  require(cudaSetDevice(device), "make a device current");
}

CurrentDevice::~CurrentDevice() { cudaSetDevice(before_); }

}  // namespace interlock::cuda
