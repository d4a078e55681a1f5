// Probes: kernels that say where they ran, and kernels that take a given time.
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "tests/cuda/probes.h"
#include "validate/cuda/kernels/cuda_call.h"

namespace interlock::cuda {

namespace {

__device__ long long now() {
  long long time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

/// Stays a while, so that later blocks must go elsewhere.
__global__ void note_multiprocessor(int* where, long long nanoseconds) {
  int number;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
  const long long end = now() + nanoseconds;
  while (now() < end) {
  }
  if (threadIdx.x == 0) where[blockIdx.x] = number;
}

__global__ void wait_for(long long nanoseconds) {
  const long long end = now() + nanoseconds;
  while (now() < end) {
  }
}

}  // namespace

std::set<int> multiprocessors_of(cudaStream_t stream, int blocks) {
  int* where = nullptr;
  require(cudaMalloc(reinterpret_cast<void**>(&where), blocks * sizeof(int)), "memory");
  note_multiprocessor<<<blocks, 1024, 0, stream>>>(where, 20'000);
  std::vector<int> numbers(static_cast<std::size_t>(blocks));
  require(cudaStreamSynchronize(stream), "note multiprocessors");
  require(cudaMemcpy(numbers.data(), where, blocks * sizeof(int), cudaMemcpyDefault), "take down");
  cudaFree(where);
  return {numbers.begin(), numbers.end()};
}

void spin(cudaStream_t stream, int blocks, long long nanoseconds) {
  wait_for<<<blocks, 1024, 0, stream>>>(nanoseconds);
  require(cudaGetLastError(), "spin");
}

}  // namespace interlock::cuda
