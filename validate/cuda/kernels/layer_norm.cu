// LayerNorm: a block for each row; gradients of gain and shift as sums over columns.
// SPDX-License-Identifier: Apache-2.0
//
// Backwards keep x alone, so mean and deviation are found again. Source of the gradient: Ba et al.,
// arXiv 1607.06450, differentiated: dx = (g - mean(g) - n mean(g n)) / deviation, where n is the
// normalised x and g is dy times the gain.
#include "validate/cuda/kernels/column_sums.cuh"

namespace interlock::cuda {

namespace {

/// Mean and 1 / deviation of a row, in every thread of its block.
template <int kWide, class T>
__device__ float2 row_statistics(const T* x, int columns, float* parts) {
  float sum = 0;
  for (int c = first_column<kWide>(); c < columns; c += column_step<kWide>()) {
    const auto from = load<kWide>(x + c);
    for (int k = 0; k < kWide; ++k) sum += to_float(from.at[k]);
  }
  const float mean = block_sum(sum, parts) / columns;
  float squares = 0;
  for (int c = first_column<kWide>(); c < columns; c += column_step<kWide>()) {
    const auto from = load<kWide>(x + c);
    for (int k = 0; k < kWide; ++k) {
      const float off = to_float(from.at[k]) - mean;
      squares += off * off;
    }
  }
  return {mean, rsqrtf(block_sum(squares, parts) / columns + kNormEpsilon)};
}

template <int kWide, class T>
__global__ void norm_rows(T* y, const T* x, const T* gain, const T* shift, Matrix shape) {
  __shared__ float parts[kWarp];
  for (std::int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const T* from = x + row * shape.columns;
    const float2 s = row_statistics<kWide>(from, shape.columns, parts);
    for (int c = first_column<kWide>(); c < shape.columns; c += column_step<kWide>()) {
      const auto in = load<kWide>(from + c), by = load<kWide>(gain + c),
                 plus = load<kWide>(shift + c);
      Lot<T, kWide> out;
      for (int k = 0; k < kWide; ++k) {
        const float n = (to_float(in.at[k]) - s.x) * s.y;
        put(out.at[k], n * to_float(by.at[k]) + to_float(plus.at[k]));
      }
      store(y + row * shape.columns + c, out);
    }
  }
}

template <int kWide, class T>
__global__ void norm_rows_gradient(T* dx, const T* x, const T* gain, const T* dy, Matrix shape) {
  __shared__ float parts[kWarp];
  for (std::int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const T *from = x + row * shape.columns, *slope = dy + row * shape.columns;
    const float2 s = row_statistics<kWide>(from, shape.columns, parts);
    float sum = 0, sum_n = 0;
    for (int c = first_column<kWide>(); c < shape.columns; c += column_step<kWide>()) {
      const auto in = load<kWide>(from + c), by = load<kWide>(gain + c), d = load<kWide>(slope + c);
      for (int k = 0; k < kWide; ++k) {
        const float g = to_float(d.at[k]) * to_float(by.at[k]);
        sum += g;
        sum_n += g * (to_float(in.at[k]) - s.x) * s.y;
      }
    }
    const float mean = block_sum(sum, parts) / shape.columns;
    const float mean_n = block_sum(sum_n, parts) / shape.columns;
    for (int c = first_column<kWide>(); c < shape.columns; c += column_step<kWide>()) {
      const auto in = load<kWide>(from + c), by = load<kWide>(gain + c), d = load<kWide>(slope + c);
      Lot<T, kWide> out;
      for (int k = 0; k < kWide; ++k) {
        const float g = to_float(d.at[k]) * to_float(by.at[k]);
        const float n = (to_float(in.at[k]) - s.x) * s.y;
        put(out.at[k], (g - mean - n * mean_n) * s.y);
      }
      store(dx + row * shape.columns + c, out);
    }
  }
}

template <int kWide, class T>
__global__ void keep_statistics(float2* statistics, const T* x, Matrix shape) {
  __shared__ float parts[kWarp];
  for (std::int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const float2 s = row_statistics<kWide>(x + row * shape.columns, shape.columns, parts);
    if (threadIdx.x == 0) statistics[row] = s;
  }
}

template <class T>
struct RowNormed {
  using Number = T;
  static constexpr int kSums = 2;
  const T *x, *dy;
  const float2* statistics;
  int columns;
  template <int kWide>
  __device__ void add(std::int64_t row, int column, float (&sums)[kSums][kWide]) const {
    const float2 s = statistics[row];
    const auto in = load<kWide>(x + row * columns + column);
    const auto slope = load<kWide>(dy + row * columns + column);
    for (int k = 0; k < kWide; ++k) {
      sums[0][k] += to_float(slope.at[k]) * (to_float(in.at[k]) - s.x) * s.y;
      sums[1][k] += to_float(slope.at[k]);
    }
  }
};

template <class T>
struct AddToBoth {
  T *gain, *shift;
  __device__ void operator()(int column, const float* sums) const {
    add_to(gain, column, sums[0]);
    add_to(shift, column, sums[1]);
  }
};

}  // namespace

/// Returns the scratch of either norm: two sums a column, and two statistics of each row or column.
std::int64_t norm_scratch(Matrix shape) {
  return column_scratch(shape, 2) + 2 * std::max<std::int64_t>(shape.rows, 2 * shape.columns);
}

void layer_norm(const Stream& stream, void* y, const void* x, const void* gain, const void* shift,
                Matrix shape) {
  with_lots(stream, "layer_norm", shape.columns, [&](auto one, auto width) {
    using T = decltype(one);
    constexpr int kWide = decltype(width)::value;
    const unsigned threads = threads_of_row(shape.columns, kWide);
    norm_rows<kWide><<<grid_of(stream, shape.rows), threads, 0, stream.handle>>>(
        static_cast<T*>(y), static_cast<const T*>(x), static_cast<const T*>(gain),
        static_cast<const T*>(shift), shape);
  });
}

void layer_norm_gradient(const Stream& stream, const NormGradients& to, const void* x,
                         const void* gain, const void* dy, Matrix shape, float* scratch) {
  with_lots(stream, "layer_norm_gradient", shape.columns, [&](auto one, auto width) {
    using T = decltype(one);
    constexpr int kWide = decltype(width)::value;
    const T *from = static_cast<const T*>(x), *slope = static_cast<const T*>(dy);
    const unsigned grid = grid_of(stream, shape.rows);
    const unsigned threads = threads_of_row(shape.columns, kWide);
    if (to.dgain != nullptr) {
      auto* statistics = reinterpret_cast<float2*>(scratch);
      keep_statistics<kWide><<<grid, threads, 0, stream.handle>>>(statistics, from, shape);
      sum_columns(stream, shape, scratch + 2 * shape.rows,
                  RowNormed<T>{from, slope, statistics, shape.columns},
                  AddToBoth<T>{static_cast<T*>(to.dgain), static_cast<T*>(to.dshift)});
    }
    if (to.dx == nullptr) return;
    norm_rows_gradient<kWide><<<grid, threads, 0, stream.handle>>>(
        static_cast<T*>(to.dx), from, static_cast<const T*>(gain), slope, shape);
  });
}

}  // namespace interlock::cuda
