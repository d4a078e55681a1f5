// Sums over the rows of each column in two stages, without atomics.
// SPDX-License-Identifier: Apache-2.0
//
// Stage one: a thread for each (lot of columns, part of the rows). Stage two: a thread for each
// column adds the parts up in order and hands the totals to `finish`. Parts depend on the shape
// alone.
#pragma once

#include "validate/cuda/kernels/element.cuh"

namespace interlock::cuda {

constexpr int kColumnThreads = 128;

inline int parts_of_rows(std::int64_t rows) {
  return static_cast<int>(std::clamp<std::int64_t>((rows + 31) / 32, 1, 128));
}

/// Sums the columns of a part of the rows. `values.add(row, column, sums)` adds what a row has to
/// the sums of the columns of a lot.
template <int kWide, class Values>
__global__ void sum_parts(float* parts, Matrix shape, int count, Values values) {
  constexpr int kSums = Values::kSums;
  const std::int64_t length = (shape.rows + count - 1) / count;
  const int blocks = (shape.columns / kWide + kColumnThreads - 1) / kColumnThreads;
  for (std::int64_t task = blockIdx.x; task < std::int64_t{blocks} * count; task += gridDim.x) {
    const std::int64_t part = task / blocks;
    const int lot = static_cast<int>(task % blocks) * kColumnThreads + threadIdx.x;
    const int column = lot * kWide;
    if (column >= shape.columns) continue;
    float sums[kSums][kWide] = {};
    const std::int64_t end = min(shape.rows, (part + 1) * length);
    for (std::int64_t row = part * length; row < end; ++row) values.add(row, column, sums);
    for (int s = 0; s < kSums; ++s) {
      float* to = parts + (part * kSums + s) * shape.columns + column;
      for (int k = 0; k < kWide; ++k) to[k] = sums[s][k];
    }
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

template <int kWide, class Values, class Finish>
void sum_lots(const Stream& stream, Matrix shape, float* scratch, Values values, Finish finish) {
  const int count = parts_of_rows(shape.rows);
  const std::int64_t blocks = (shape.columns / kWide + kColumnThreads - 1) / kColumnThreads;
  const std::int64_t totals = (shape.columns + kColumnThreads - 1) / kColumnThreads;
  sum_parts<kWide><<<grid_of(stream, blocks * count), kColumnThreads, 0, stream.handle>>>(
      scratch, shape, count, values);
  sum_totals<Values::kSums><<<grid_of(stream, totals), kColumnThreads, 0, stream.handle>>>(
      scratch, shape, count, finish);
}

/// Sums columns. `scratch`: column_scratch(shape, Values::kSums) numbers. Packs where they keep a
/// block busy.
template <class Values, class Finish>
void sum_columns(const Stream& stream, Matrix shape, float* scratch, Values values, Finish finish) {
  constexpr int kPack = Pack<typename Values::Number>::kSize;
  if (shape.columns % kPack == 0 && shape.columns >= kColumnThreads * kPack) {
    sum_lots<kPack>(stream, shape, scratch, values, finish);
  } else {
    sum_lots<1>(stream, shape, scratch, values, finish);
  }
}

/// Adds a column's sum to a tensor's element.
template <class T>
__device__ void add_to(T* to, int column, float sum) {
  put(to[column], to_float(to[column]) + sum);
}

}  // namespace interlock::cuda
