// Kernels as plain C++: what CUDA's compiler knows by itself. Included before every kernel file.
// SPDX-License-Identifier: Apache-2.0
//
// launch_syntax.cmake has turned `kernel<<<grid, block, shared, stream>>>(arguments)` into
// `EMULATED_LAUNCH(kernel, grid, block, shared, stream)(arguments)`.
#pragma once

#define __shared__ static  // blocks run one after the other

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

#include "tests/cuda/emulator/emulated_gpu.h"

namespace emulated {

extern uint3 thread_index, block_index;
extern dim3 block_size, grid_size;

/// The most that a block may ask for on every architecture since sm_80.
constexpr std::size_t kSharedBytes = 99 << 10;

/// The manner of a kernel: one that never waits for other threads needs no fibers.
enum class Manner : std::uint8_t { Unknown, Plain, Waits };

void run_grid(dim3 grid, dim3 block, Manner& manner, const std::function<void()>& thread);
void wait_for_block();
float exchange(float value, int mask);
unsigned multiprocessor();
inline std::uint64_t nanoseconds() { return static_cast<std::uint64_t>(look_at_clock() * 1e9); }

template <class Kernel>
class Launch {
 public:
  Launch(Kernel kernel, dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream)
      : kernel_(kernel), grid_(grid), block_(block), shared_(shared), stream_(stream) {}

  template <class... Arguments>
  void operator()(Arguments... arguments) const {
    EmulatedGpus& gpus = EmulatedGpus::instance();
    Stream* const stream = gpus.stream(stream_);
    const bool fits =
        block_.x * block_.y * block_.z <= 1024 && grid_.x > 0 && shared_ <= kSharedBytes;
    if (stream == nullptr || stream->device != gpus.current || !fits) {
      gpus.fail(fits ? cudaErrorInvalidResourceHandle : cudaErrorInvalidConfiguration);
      return;
    }
    gpus.enqueue(stream, [kernel = kernel_, grid = grid_, block = block_, arguments...] {
      static Manner manner = Manner::Unknown;
      run_grid(grid, block, manner, [&] { kernel(arguments...); });
    });
  }

 private:
  Kernel kernel_;
  dim3 grid_, block_;
  std::size_t shared_;
  cudaStream_t stream_;
};

}  // namespace emulated

#define EMULATED_LAUNCH(kernel, ...) \
  emulated::Launch([](auto... arguments) { kernel(arguments...); }, __VA_ARGS__)

#define threadIdx emulated::thread_index
#define blockIdx emulated::block_index
#define blockDim emulated::block_size
#define gridDim emulated::grid_size

inline void __syncthreads() { emulated::wait_for_block(); }
inline float __shfl_xor_sync(unsigned, float value, int mask) {
  return emulated::exchange(value, mask);
}
inline void __stwb(uint4* to, uint4 bits) { *to = bits; }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
#include "tests/cuda/emulator/emulated_mma.h"
using std::max;
using std::min;
