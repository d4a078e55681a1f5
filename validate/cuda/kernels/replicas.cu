// Replicas that share a GPU: the mean of what each of them has, where NCCL cannot join them.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "validate/cuda/kernels/element.cuh"

namespace interlock::cuda {

namespace {

/// Equal parts of every replica, in the order of their ranks.
template <class T>
struct Copies {
  T* at[kMostReplicas];
  int count;
};

/// Adds numbers [i, i + kWide) up, one replica after the other, and writes their mean to all, or to
/// `keeper` alone and zeros to the others.
template <int kWide, class T>
__device__ void average_lot(const Copies<T>& copies, std::int64_t i, float factor, int keeper) {
  float sums[kWide];
  for (int k = 0; k < kWide; ++k) sums[k] = 0;
  for (int c = 0; c < copies.count; ++c) {
    const Lot<T, kWide> lot = load<kWide>(copies.at[c] + i);
    for (int k = 0; k < kWide; ++k) {
      sums[k] = c == 0 ? to_float(lot.at[k]) : sums[k] + to_float(lot.at[k]);
    }
  }
  Lot<T, kWide> mean, zeros;
  for (int k = 0; k < kWide; ++k) {
    put(mean.at[k], sums[k] * factor);
    put(zeros.at[k], 0.0F);
  }
  for (int c = 0; c < copies.count; ++c) {
    store<kWide>(copies.at[c] + i, keeper < 0 || c == keeper ? mean : zeros);
  }
}

/// Whole lots first, then the last numbers one by one.
template <class T>
__global__ void average(Copies<T> copies, std::int64_t size, float factor, int keeper) {
  constexpr int kWide = Pack<T>::kSize;
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x, lots = size / kWide;
  for (std::int64_t i = first; i < lots; i += step) {
    average_lot<kWide>(copies, i * kWide, factor, keeper);
  }
  for (std::int64_t i = lots * kWide + first; i < size; i += step) {
    average_lot<1>(copies, i, factor, keeper);
  }
}

}  // namespace

void average_replicas(const Stream& stream, const std::vector<void*>& replicas, NumberRange part,
                      int keeper) {
  if (part.numbers == 0) return;
  CHECK(replicas.size() <= kMostReplicas, "as many replicas as a kernel takes");
  const float factor = 1.0F / static_cast<float>(replicas.size());
  with_element(stream, "average_replicas", [&](auto one) {
    using T = decltype(one);
    Copies<T> copies{};
    for (void* replica : replicas) {
      copies.at[copies.count++] = static_cast<T*>(replica) + part.first;
    }
    const std::int64_t tasks = part.numbers / Pack<T>::kSize + Pack<T>::kSize;
    average<T><<<grid_of(stream, (tasks + kThreads - 1) / kThreads), kThreads, 0, stream.handle>>>(
        copies, part.numbers, factor, keeper);
  });
}

}  // namespace interlock::cuda
