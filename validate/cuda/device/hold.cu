// Hold: one thread that looks at a number of the host until it changes.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "validate/cuda/device/hold.h"
#include "validate/cuda/kernels/cuda_call.h"

namespace interlock::cuda {

namespace {

constexpr std::uint64_t kLongest = 20'000'000;  // ns

__device__ std::uint64_t hold_clock() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void wait_at_gate(const volatile int* opened) {
  const std::uint64_t start = hold_clock();
  while (*opened == 0 && hold_clock() - start < kLongest) {
  }
}

}  // namespace

Hold::Hold() {
  void* memory = nullptr;
  require(cudaHostAlloc(&memory, sizeof(int), cudaHostAllocPortable | cudaHostAllocMapped),
          "memory of the host for a gate");
  opened_ = static_cast<volatile int*>(memory);
  *opened_ = 1;
}

Hold::~Hold() { cudaFreeHost(const_cast<int*>(opened_)); }

void Hold::close(cudaStream_t stream) {
  *opened_ = 0;
  wait_at_gate<<<1, 1, 0, stream>>>(opened_);
  require(cudaGetLastError(), "wait at a gate");
}

void Hold::open() { *opened_ = 1; }

}  // namespace interlock::cuda
