// Gradients of what is added to, or multiplies, every row: sums over columns.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/kernels/column_sums.cuh"

namespace interlock::cuda {

namespace {

template <class T>
struct Plain {
  using Number = T;
  static constexpr int kSums = 1;
  const T* dy;
  int columns;
  template <int kWide>
  __device__ void add(std::int64_t row, int column, float (&sums)[kSums][kWide]) const {
    const auto slope = load<kWide>(dy + row * columns + column);
    for (int k = 0; k < kWide; ++k) sums[0][k] += to_float(slope.at[k]);
  }
};

template <class T>
struct Product {
  using Number = T;
  static constexpr int kSums = 1;
  const T *x, *dy;
  int columns;
  template <int kWide>
  __device__ void add(std::int64_t row, int column, float (&sums)[kSums][kWide]) const {
    const auto in = load<kWide>(x + row * columns + column);
    const auto slope = load<kWide>(dy + row * columns + column);
    for (int k = 0; k < kWide; ++k) sums[0][k] += to_float(in.at[k]) * to_float(slope.at[k]);
  }
};

template <class T>
struct AddTo {
  T* to;
  __device__ void operator()(int column, const float* sums) const { add_to(to, column, sums[0]); }
};

}  // namespace

std::int64_t column_scratch(Matrix shape, int sums) {
  return std::int64_t{parts_of_rows(shape.rows)} * sums * shape.columns;
}

void bias_gradient(const Stream& stream, void* dbias, const void* dy, Matrix shape,
                   float* scratch) {
  with_element(stream, "bias_gradient", [&](auto one) {
    using T = decltype(one);
    sum_columns(stream, shape, scratch, Plain<T>{static_cast<const T*>(dy), shape.columns},
                AddTo<T>{static_cast<T*>(dbias)});
  });
}

void scale_gradient(const Stream& stream, void* dweight, const void* x, const void* dy,
                    Matrix shape, float* scratch) {
  with_element(stream, "scale_gradient", [&](auto one) {
    using T = decltype(one);
    sum_columns(stream, shape, scratch,
                Product<T>{static_cast<const T*>(x), static_cast<const T*>(dy), shape.columns},
                AddTo<T>{static_cast<T*>(dweight)});
  });
}

}  // namespace interlock::cuda
