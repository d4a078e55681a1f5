// Causal softmax: a block for each row of the scores; token i sees tokens 0..i.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "validate/cuda/kernels/element.cuh"

namespace interlock::cuda {

namespace {

/// scores (rows, tokens), row r of token r % tokens: softmax of factor * scores, in place; what is
/// not seen becomes 0.
template <int kWide, class T>
__global__ void softmax_rows(T* scores, float factor, Matrix shape) {
  __shared__ float parts[kWarp];
  for (std::int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    T* at = scores + row * shape.columns;
    const int seen = static_cast<int>(row % shape.columns) + 1;
    float most = -INFINITY;
    for (int c = first_column<kWide>(); c < seen; c += column_step<kWide>()) {
      const auto score = load<kWide>(at + c);
      for (int k = 0; k < kWide; ++k) {
        if (c + k < seen) most = fmaxf(most, factor * to_float(score.at[k]));
      }
    }
    most = block_max(most, parts);
    float sum = 0;
    for (int c = first_column<kWide>(); c < seen; c += column_step<kWide>()) {
      const auto score = load<kWide>(at + c);
      for (int k = 0; k < kWide; ++k) {
        if (c + k < seen) sum += expf(factor * to_float(score.at[k]) - most);
      }
    }
    const float share = 1 / block_sum(sum, parts);
    for (int c = first_column<kWide>(); c < shape.columns; c += column_step<kWide>()) {
      Lot<T, kWide> weight = {};
      if (c < seen) weight = load<kWide>(at + c);
      for (int k = 0; k < kWide; ++k) {
        const bool sees = c + k < seen;
        put(weight.at[k], sees ? expf(factor * to_float(weight.at[k]) - most) * share : 0.0F);
      }
      store(at + c, weight);
    }
  }
}

/// d(scores) = factor * w * (dw - sum of w dw), in place of dw.
template <int kWide, class T>
__global__ void softmax_rows_gradient(T* slopes, const T* weights, float factor, Matrix shape) {
  __shared__ float parts[kWarp];
  for (std::int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    T* at = slopes + row * shape.columns;
    const T* from = weights + row * shape.columns;
    const int seen = static_cast<int>(row % shape.columns) + 1;
    float sum = 0;
    for (int c = first_column<kWide>(); c < seen; c += column_step<kWide>()) {
      const auto weight = load<kWide>(from + c), slope = load<kWide>(at + c);
      for (int k = 0; k < kWide; ++k) {
        if (c + k < seen) sum += to_float(weight.at[k]) * to_float(slope.at[k]);
      }
    }
    sum = block_sum(sum, parts);
    for (int c = first_column<kWide>(); c < shape.columns; c += column_step<kWide>()) {
      Lot<T, kWide> weight = {}, slope = {};
      if (c < seen) {
        weight = load<kWide>(from + c);
        slope = load<kWide>(at + c);
      }
      for (int k = 0; k < kWide; ++k) {
        const bool sees = c + k < seen;
        const float off = to_float(slope.at[k]) - sum;
        put(slope.at[k], sees ? factor * to_float(weight.at[k]) * off : 0.0F);
      }
      store(at + c, slope);
    }
  }
}

}  // namespace

void causal_softmax(const Stream& stream, void* scores, float factor, Matrix shape) {
  with_lots(stream, "causal_softmax", shape.columns, [&](auto one, auto width) {
    using T = decltype(one);
    constexpr int kWide = decltype(width)::value;
    const unsigned threads = threads_of_row(shape.columns, kWide);
    softmax_rows<kWide><<<grid_of(stream, shape.rows), threads, 0, stream.handle>>>(
        static_cast<T*>(scores), factor, shape);
  });
}

void causal_softmax_gradient(const Stream& stream, void* dscores, const void* weights, float factor,
                             Matrix shape) {
  with_lots(stream, "causal_softmax_gradient", shape.columns, [&](auto one, auto width) {
    using T = decltype(one);
    constexpr int kWide = decltype(width)::value;
    const unsigned threads = threads_of_row(shape.columns, kWide);
    softmax_rows_gradient<kWide><<<grid_of(stream, shape.rows), threads, 0, stream.handle>>>(
        static_cast<T*>(dscores), static_cast<const T*>(weights), factor, shape);
  });
}

}  // namespace interlock::cuda
