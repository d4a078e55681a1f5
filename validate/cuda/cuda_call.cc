// What CUDA's libraries answer, as errors of ours.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/cuda_call.h"

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

CurrentDevice::CurrentDevice(int device) {
  require(cudaGetDevice(&before_), "which device is current");
  require(cudaSetDevice(device), "make a device current");
}

CurrentDevice::~CurrentDevice() { cudaSetDevice(before_); }

}  // namespace interlock::cuda
