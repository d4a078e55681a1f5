// Sums over the rows of each column in two stages, without atomics.
// SPDX-License-Identifier: Apache-2.0
//
// Stage one: a thread for each (column, part of the rows). Stage two: a thread for each column adds
// the parts up in order and hands the totals to `finish`. Parts depend on the shape alone.
#pragma once

#include "validate/cuda/kernels/element.cuh"

namespace interlock::cuda {

constexpr int kColumnThreads = 128;

inline int parts_of_rows(std::int64_t rows) {
  return static_cast<int>(std::clamp<std::int64_t>((rows + 31) / 32, 1, 128));
}

/// `values(row, column, sums)` adds what a row has to the sums of a column.
template <int kSums, class Values>
__global__ void sum_parts(float* parts, Matrix shape, int count, Values values) {
  const std::int64_t length = (shape.rows + count - 1) / count;
  const int blocks = (shape.columns + kColumnThreads - 1) / kColumnThreads;
  for (std::int64_t task = blockIdx.x; task < std::int64_t{blocks} * count; task += gridDim.x) {
    const std::int64_t part = task / blocks;
    const int column = static_cast<int>(task % blocks) * kColumnThreads + threadIdx.x;
    if (column >= shape.columns) continue;
    float sums[kSums] = {};
    const std::int64_t end = min(shape.rows, (part + 1) * length);
    for (std::int64_t row = part * length; row < end; ++row) values(row, column, sums);
    for (int k = 0; k < kSums; ++k) parts[(part * kSums + k) * shape.columns + column] = sums[k];
  }
}

template <int kSums, class Finish>
__global__ void sum_totals(const float* parts, Matrix shape, int count, Finish finish) {
  const int step = static_cast<int>(gridDim.x * blockDim.x);
  for (int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); column < shape.columns;
       column += step) {
    float sums[kSums] = {};
    for (std::int64_t part = 0; part < count; ++part) {
      for (int k = 0; k < kSums; ++k) {
        sums[k] += parts[(part * kSums + k) * shape.columns + column];
      }
    }
    finish(column, sums);
  }
}

/// `scratch`: column_scratch(shape, kSums) numbers.
template <int kSums, class Values, class Finish>
void sum_columns(const Lane& lane, Matrix shape, float* scratch, Values values, Finish finish) {
  const int count = parts_of_rows(shape.rows);
  const std::int64_t blocks = (shape.columns + kColumnThreads - 1) / kColumnThreads;
  sum_parts<kSums><<<grid_of(lane, blocks * count), kColumnThreads, 0, lane.stream>>>(
      scratch, shape, count, values);
  sum_totals<kSums>
      <<<grid_of(lane, blocks), kColumnThreads, 0, lane.stream>>>(scratch, shape, count, finish);
}

/// Adds a column's sum to a tensor's element.
template <class T>
__device__ void add_to(T* to, int column, float sum) {
  put(to[column], to_float(to[column]) + sum);
}

}  // namespace interlock::cuda
