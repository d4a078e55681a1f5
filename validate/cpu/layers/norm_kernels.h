// Kernels of layer norm and batch norm on the CPU; instantiated for float and double.
// SPDX-License-Identifier: Apache-2.0
//
// y = (x - mean) / sqrt(variance + epsilon) * gain + shift, mean and variance over a row (layer
// norm) or over the rows of a column (batch norm). Backwards compute them again from x. Names as in
// dense_kernels.h; dx may be dy or x unless it is accumulated.
#pragma once

#include "validate/cpu/layers/matrix_view.h"

namespace interlock {

inline constexpr double kNormEpsilon = 1e-5;

template <class T>
void layer_norm_forward(ConstStridedView<T> x, const T* gain, const T* shift, MatrixView<T> y);
template <class T>
void layer_norm_backward_input(ConstStridedView<T> x, const T* gain, ConstMatrixView<T> dy,
                               StridedView<T> dx, bool accumulate);
template <class T>
void layer_norm_backward_weight(ConstStridedView<T> x, ConstMatrixView<T> dy, T* dgain, T* dshift);

/// The numbers of each column that batch norm needs.
template <class T>
struct BatchNormWeights {
  const T* gain;
  const T* shift;
};
/// Computes y (+)= the norm of x.
template <class T>
void batch_norm_forward(ConstMatrixView<T> x, BatchNormWeights<T> weights, MatrixView<T> y,
                        bool accumulate);
template <class T>
void batch_norm_backward_input(ConstMatrixView<T> x, const T* gain, ConstMatrixView<T> dy,
                               MatrixView<T> dx);
template <class T>
void batch_norm_backward_weight(ConstMatrixView<T> x, ConstMatrixView<T> dy, T* dgain, T* dshift);

}  // namespace interlock
