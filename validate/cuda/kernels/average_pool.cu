// Average over the pixels of each sample.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/kernels/element.cuh"

namespace interlock::cuda {

namespace {

template <class T>
__global__ void average(T* y, const T* x, Matrix shape, int pixels) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  const std::int64_t size = shape.rows * shape.columns;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += step) {
    const std::int64_t sample = i / shape.columns, c = i % shape.columns;
    float sum = 0;
    for (int pixel = 0; pixel < pixels; ++pixel) {
      sum += to_float(x[(sample * pixels + pixel) * shape.columns + c]);
    }
    put(y[i], sum / static_cast<float>(pixels));
  }
}

template <class T>
__global__ void spread(T* dx, const T* dy, Matrix shape, int pixels) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  const std::int64_t size = shape.rows * shape.columns * pixels;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += step) {
    const std::int64_t sample = i / shape.columns / pixels, c = i % shape.columns;
    put(dx[i], to_float(dy[sample * shape.columns + c]) / static_cast<float>(pixels));
  }
}

}  // namespace

void average_pool(const Stream& stream, void* y, const void* x, Matrix shape, int pixels) {
  with_element(stream, "average_pool", [&](auto one) {
    using T = decltype(one);
    average<<<grid_of(stream, (shape.size() + kThreads - 1) / kThreads), kThreads, 0,
              stream.handle>>>(static_cast<T*>(y), static_cast<const T*>(x), shape, pixels);
  });
}

void average_pool_gradient(const Stream& stream, void* dx, const void* dy, Matrix shape,
                           int pixels) {
  const std::int64_t size = shape.size() * pixels;
  with_element(stream, "average_pool_gradient", [&](auto one) {
    using T = decltype(one);
    spread<<<grid_of(stream, (size + kThreads - 1) / kThreads), kThreads, 0, stream.handle>>>(
        static_cast<T*>(dx), static_cast<const T*>(dy), shape, pixels);
  });
}

}  // namespace interlock::cuda
