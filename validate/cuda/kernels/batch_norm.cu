// BatchNorm: statistics of each column over all rows of a micro-batch, then one pass over it.
// SPDX-License-Identifier: Apache-2.0
//
// Source: Ioffe and Szegedy, arXiv 1502.03167; the variance is the biased one, as in training.
#include "validate/cuda/kernels/column_sums.cuh"

namespace interlock::cuda {

namespace {

template <class T>
struct Value {
  using Number = T;
  static constexpr int kSums = 1;
  const T* x;
  int columns;
  template <int kWide>
  __device__ void add(std::int64_t row, int column, float (&sums)[kSums][kWide]) const {
    const auto in = load<kWide>(x + row * columns + column);
    for (int k = 0; k < kWide; ++k) sums[0][k] += to_float(in.at[k]);
  }
};

struct KeepMean {
  float2* statistics;
  float rows;
  __device__ void operator()(int column, const float* sums) const {
    statistics[column].x = sums[0] / rows;
  }
};

template <class T>
struct Square {
  using Number = T;
  static constexpr int kSums = 1;
  const T* x;
  const float2* statistics;
  int columns;
  template <int kWide>
  __device__ void add(std::int64_t row, int column, float (&sums)[kSums][kWide]) const {
    const auto in = load<kWide>(x + row * columns + column);
    for (int k = 0; k < kWide; ++k) {
      const float off = to_float(in.at[k]) - statistics[column + k].x;
      sums[0][k] += off * off;
    }
  }
};

struct KeepInverse {
  float2* statistics;
  float rows;
  __device__ void operator()(int column, const float* sums) const {
    statistics[column].y = rsqrtf(sums[0] / rows + kNormEpsilon);
  }
};

template <class T>
struct ColumnNormed {
  using Number = T;
  static constexpr int kSums = 2;
  const T *x, *dy;
  const float2* statistics;
  int columns;
  template <int kWide>
  __device__ void add(std::int64_t row, int column, float (&sums)[kSums][kWide]) const {
    const auto in = load<kWide>(x + row * columns + column);
    const auto slope = load<kWide>(dy + row * columns + column);
    for (int k = 0; k < kWide; ++k) {
      const float2 s = statistics[column + k];
      sums[0][k] += to_float(slope.at[k]) * (to_float(in.at[k]) - s.x) * s.y;
      sums[1][k] += to_float(slope.at[k]);
    }
  }
};

/// Keeps the means that the input gradient needs; adds the sums to gradients that are wanted.
template <class T>
struct KeepSlopes {
  float2* slopes;
  T *gain, *shift;
  float rows;
  __device__ void operator()(int column, const float* sums) const {
    slopes[column] = {sums[0] / rows, sums[1] / rows};
    if (gain == nullptr) return;
    add_to(gain, column, sums[0]);
    add_to(shift, column, sums[1]);
  }
};

template <class T>
__global__ void norm_columns(T* y, const T* x, const T* gain, const T* shift,
                             const float2* statistics, Matrix shape) {
  for (std::int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    for (int c = threadIdx.x; c < shape.columns; c += blockDim.x) {
      const std::int64_t i = row * shape.columns + c;
      const float n = (to_float(x[i]) - statistics[c].x) * statistics[c].y;
      put(y[i], n * to_float(gain[c]) + to_float(shift[c]));
    }
  }
}

template <class T>
__global__ void norm_columns_gradient(T* dx, const T* x, const T* gain, const T* dy,
                                      const float2* statistics, Matrix shape) {
  const float2* slopes = statistics + shape.columns;
  for (std::int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    for (int c = threadIdx.x; c < shape.columns; c += blockDim.x) {
      const std::int64_t i = row * shape.columns + c;
      const float n = (to_float(x[i]) - statistics[c].x) * statistics[c].y;
      const float off = to_float(dy[i]) - slopes[c].y - n * slopes[c].x;
      put(dx[i], off * to_float(gain[c]) * statistics[c].y);
    }
  }
}

/// Mean and 1 / deviation of each column into `statistics`.
template <class T>
void find_statistics(const Stream& stream, float2* statistics, const T* x, Matrix shape,
                     float* scratch) {
  const auto rows = static_cast<float>(shape.rows);
  sum_columns(stream, shape, scratch, Value<T>{x, shape.columns}, KeepMean{statistics, rows});
  sum_columns(stream, shape, scratch, Square<T>{x, statistics, shape.columns},
              KeepInverse{statistics, rows});
}

}  // namespace

void batch_norm(const Stream& stream, void* y, const void* x, const void* gain, const void* shift,
                Matrix shape, float* scratch) {
  with_element(stream, "batch_norm", [&](auto one) {
    using T = decltype(one);
    auto* statistics = reinterpret_cast<float2*>(scratch);
    find_statistics(stream, statistics, static_cast<const T*>(x), shape,
                    scratch + 4 * shape.columns);
    norm_columns<<<grid_of(stream, shape.rows), threads_of_row(shape.columns), 0, stream.handle>>>(
        static_cast<T*>(y), static_cast<const T*>(x), static_cast<const T*>(gain),
        static_cast<const T*>(shift), statistics, shape);
  });
}

void batch_norm_gradient(const Stream& stream, const NormGradients& to, const void* x,
                         const void* gain, const void* dy, Matrix shape, float* scratch) {
  with_element(stream, "batch_norm_gradient", [&](auto one) {
    using T = decltype(one);
    const T *from = static_cast<const T*>(x), *slope = static_cast<const T*>(dy);
    auto* statistics = reinterpret_cast<float2*>(scratch);
    float* sums = scratch + 4 * shape.columns;
    find_statistics(stream, statistics, from, shape, sums);
    sum_columns(stream, shape, sums, ColumnNormed<T>{from, slope, statistics, shape.columns},
                KeepSlopes<T>{statistics + shape.columns, static_cast<T*>(to.dgain),
                              static_cast<T*>(to.dshift), static_cast<float>(shape.rows)});
    if (to.dx == nullptr) return;
    norm_columns_gradient<<<grid_of(stream, shape.rows), threads_of_row(shape.columns), 0,
                            stream.handle>>>(static_cast<T*>(to.dx), from,
                                             static_cast<const T*>(gain), slope, statistics, shape);
  });
}

}  // namespace interlock::cuda
