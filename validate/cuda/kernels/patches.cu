// Patches: convolutions as products; what a kernel reads of every pixel, side by side.
// SPDX-License-Identifier: Apache-2.0
//
// The gradient gathers too: a thread for each number of an image adds up what patches read it.
#include "validate/cuda/kernels/element.cuh"

namespace interlock::cuda {

namespace {

/// Returns the place in the images that number `i` of the patches comes from; -1: the zeros around.
__device__ inline std::int64_t source_of(const Patches& p, int made_rows, int made_columns,
                                         std::int64_t i) {
  const int c = static_cast<int>(i % p.channels);
  i /= p.channels;
  const int kx = static_cast<int>(i % p.kernel);
  i /= p.kernel;
  const int ky = static_cast<int>(i % p.kernel);
  i /= p.kernel;
  const int x = static_cast<int>(i % made_columns) * p.stride + kx - p.kernel / 2;
  i /= made_columns;
  const int y = static_cast<int>(i % made_rows) * p.stride + ky - p.kernel / 2;
  const std::int64_t sample = i / made_rows;
  if (x < 0 || x >= p.columns || y < 0 || y >= p.rows) return -1;
  return ((sample * p.rows + y) * p.columns + x) * p.channels + c;
}

template <class T>
__global__ void gather(T* patches, const T* images, Patches p, int made_rows, int made_columns,
                       std::int64_t size) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += step) {
    const std::int64_t from = source_of(p, made_rows, made_columns, i);
    put(patches[i], from < 0 ? 0.0F : to_float(images[from]));
  }
}

template <class T>
__global__ void gather_gradient(T* dimages, const T* dpatches, Patches p, int made_rows,
                                int made_columns, std::int64_t size) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += step) {
    const int c = static_cast<int>(i % p.channels);
    const std::int64_t pixel = i / p.channels;
    const int x = static_cast<int>(pixel % p.columns);
    const int y = static_cast<int>(pixel / p.columns % p.rows);
    const std::int64_t sample = pixel / p.columns / p.rows;
    float sum = 0;
    for (int ky = 0; ky < p.kernel; ++ky) {
      const int from_y = y + p.kernel / 2 - ky;
      if (from_y < 0 || from_y % p.stride != 0 || from_y / p.stride >= made_rows) continue;
      for (int kx = 0; kx < p.kernel; ++kx) {
        const int from_x = x + p.kernel / 2 - kx;
        if (from_x < 0 || from_x % p.stride != 0 || from_x / p.stride >= made_columns) continue;
        const std::int64_t place =
            (sample * made_rows + from_y / p.stride) * made_columns + from_x / p.stride;
        sum += to_float(dpatches[((place * p.kernel + ky) * p.kernel + kx) * p.channels + c]);
      }
    }
    put(dimages[i], sum);
  }
}

}  // namespace

void gather_patches(const Stream& stream, void* patches, const void* images, const Patches& shape) {
  const std::int64_t size = shape.made().size();
  with_element(stream, "gather_patches", [&](auto one) {
    using T = decltype(one);
    gather<<<grid_of(stream, (size + kThreads - 1) / kThreads), kThreads, 0, stream.handle>>>(
        static_cast<T*>(patches), static_cast<const T*>(images), shape, shape.made_rows(),
        shape.made_columns(), size);
  });
}

void gather_patches_gradient(const Stream& stream, void* dimages, const void* dpatches,
                             const Patches& shape) {
  const std::int64_t size =
      std::int64_t{shape.samples} * shape.rows * shape.columns * shape.channels;
  with_element(stream, "gather_patches_gradient", [&](auto one) {
    using T = decltype(one);
    gather_gradient<<<grid_of(stream, (size + kThreads - 1) / kThreads), kThreads, 0,
                      stream.handle>>>(static_cast<T*>(dimages), static_cast<const T*>(dpatches),
                                       shape, shape.made_rows(), shape.made_columns(), size);
  });
}

}  // namespace interlock::cuda
