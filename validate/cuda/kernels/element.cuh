// Shared by kernels: element types, packs of 16 bytes, sums over a block, sizes of grids.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "validate/cuda/kernels/cuda_call.h"
#include "validate/cuda/kernels/kernels.h"

namespace interlock::cuda {

using Bf16 = __nv_bfloat16;

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(Bf16 x) { return __bfloat162float(x); }
__device__ inline void put(float& to, float x) { to = x; }
__device__ inline void put(Bf16& to, float x) { to = __float2bfloat16_rn(x); }

/// As many elements as one load or store moves.
template <class T>
struct alignas(16) Pack {
  static constexpr int kSize = 16 / sizeof(T);
  T at[kSize];
};

/// Numbers of one row that a thread works on at once: as many as a pack has where rows are whole
/// packs, else one. The shape alone decides, so that sums have one order wherever a tensor lies.
/// Example: a row of 1,000 bf16 numbers is 125 packs, and lots have 8; of 1,001, lots have 1.
template <class T, int kWide>
struct Lot {
  static_assert(kWide == 1 || kWide == Pack<T>::kSize);
  T at[kWide];
};

template <int kWide, class T>
__device__ Lot<T, kWide> load(const T* from) {
  Lot<T, kWide> lot;
  if (kWide > 1 && reinterpret_cast<std::uintptr_t>(from) % sizeof(Pack<T>) == 0) {
    const Pack<T> pack = *reinterpret_cast<const Pack<T>*>(from);
    for (int k = 0; k < kWide; ++k) lot.at[k] = pack.at[k];
  } else {
    for (int k = 0; k < kWide; ++k) lot.at[k] = from[k];
  }
  return lot;
}

template <int kWide, class T>
__device__ void store(T* to, const Lot<T, kWide>& lot) {
  if (kWide > 1 && reinterpret_cast<std::uintptr_t>(to) % sizeof(Pack<T>) == 0) {
    // Plain assignments of packs are taken apart for sm_90: eight stores of two bytes.
    uint4 bits;
    memcpy(&bits, lot.at, sizeof bits);
    __stwb(reinterpret_cast<uint4*>(to), bits);
  } else {
    for (int k = 0; k < kWide; ++k) to[k] = lot.at[k];
  }
}

/// Returns the first of the columns of a row that a thread has, column_step() apart.
template <int kWide>
__device__ int first_column() {
  return static_cast<int>(threadIdx.x) * kWide;
}
template <int kWide>
__device__ int column_step() {
  return static_cast<int>(blockDim.x) * kWide;
}

constexpr int kWarp = 32;
constexpr unsigned kWholeWarp = 0xffffffffU;

__device__ inline float warp_sum(float value) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    value += __shfl_xor_sync(kWholeWarp, value, step);
  }
  return value;
}

__device__ inline float warp_max(float value) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, step));
  }
  return value;
}

/// Returns the sum over all threads of a block of whole warps, in every thread. `parts`: shared,
/// (32).
__device__ inline float block_sum(float value, float* parts) {
  const int thread = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  value = warp_sum(value);
  __syncthreads();  // `parts` may still be read by the call before
  if (thread == 0) parts[warp] = value;
  __syncthreads();
  return warp_sum(thread < blockDim.x / kWarp ? parts[thread] : 0.0F);
}

__device__ inline float block_max(float value, float* parts) {
  const int thread = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  value = warp_max(value);
  __syncthreads();
  if (thread == 0) parts[warp] = value;
  __syncthreads();
  return warp_max(thread < blockDim.x / kWarp ? parts[thread] : -INFINITY);
}

constexpr unsigned kThreads = 256;  // of a block whose threads each have elements of their own

/// Returns the blocks of a loop over the work of `tasks`: enough to fill the multiprocessors.
inline unsigned grid_of(const Stream& stream, std::int64_t tasks) {
  return static_cast<unsigned>(
      std::max<std::int64_t>(1, std::min<std::int64_t>(tasks, std::int64_t{stream.sms} * 16)));
}

/// Returns the threads of a block that works on one row, in lots of `wide`.
inline unsigned threads_of_row(int columns, int wide = 1) {
  const int lots = (columns + wide - 1) / wide;
  return static_cast<unsigned>(std::min(256, (lots + kWarp - 1) / kWarp * kWarp));
}

/// Calls `launch` with a number of the stream's element type.
template <class Launch>
void with_element(const Stream& stream, const char* kernel, Launch launch) {
  if (stream.element == Element::Fp32) {
    launch(float{});
  } else {
    launch(Bf16{});
  }
  require(cudaGetLastError(), kernel);
}

/// Launches with the element type, and with the width of the lots of a row of `columns`, as types.
template <class Launch>
void with_lots(const Stream& stream, const char* kernel, int columns, Launch launch) {
  with_element(stream, kernel, [&](auto one) {
    constexpr int kPack = Pack<decltype(one)>::kSize;
    if (columns % kPack == 0) {
      launch(one, std::integral_constant<int, kPack>{});
    } else {
      launch(one, std::integral_constant<int, 1>{});
    }
  });
}

}  // namespace interlock::cuda
