// Kernels of layers that mix pixels: convolution and pooling; on the CPU, float and double.
// SPDX-License-Identifier: Apache-2.0
//
// Names as in dense_kernels.h; columns and weights are laid out as network.h says.
#pragma once

#include "validate/cpu/layers/matrix_view.h"

namespace interlock {

/// Samples of rows x columns pixels; odd kernels, zeros around as wide as half of one.
struct ConvolutionSizes {
  int samples = 1, rows = 1, columns = 1, inputs = 1, outputs = 1, kernel = 1, stride = 1;
};

/// Computes y = the convolution of x; `bias` may be null.
template <class T>
void convolution_forward(const ConvolutionSizes& sizes, const T* x, const T* weight, const T* bias,
                         T* y);
/// Computes dx (+)= the gradient of x. REQUIRES: dx is not dy.
template <class T>
void convolution_backward_input(const ConvolutionSizes& sizes, const T* dy, const T* weight, T* dx,
                                bool accumulate);
/// Adds the gradient of the weights to `dweight`.
template <class T>
void convolution_backward_weight(const ConvolutionSizes& sizes, const T* x, const T* dy,
                                 T* dweight);

/// Computes y = the mean of the `pixels` rows of each sample.
template <class T>
void average_pool_forward(ConstMatrixView<T> x, int pixels, MatrixView<T> y);
/// Computes the gradient of x. `rectified`: x was made by a Relu, whose backward is done on the
/// way. dx may be x.
template <class T>
void average_pool_backward_input(ConstMatrixView<T> x, ConstMatrixView<T> dy, int pixels,
                                 bool rectified, MatrixView<T> dx);

}  // namespace interlock
