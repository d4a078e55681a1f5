// Kernels of layers that treat every row alike, on the CPU; instantiated for float and double.
// SPDX-License-Identifier: Apache-2.0
//
// Names: x what a layer reads, y what it makes, d before a name its gradient. Gradients of weights
// are added to what is there. Unless said otherwise dx may be dy or x.
#pragma once

#include "validate/cpu/layers/matrix_view.h"

namespace interlock {

// A View is a matrix, or some columns of one: see Strided... in matrix_view.h.

/// Computes y = x w + b; `bias` may be null.
template <class T, class View>
void linear_forward(ConstMatrixView<T> x, ConstMatrixView<T> weight, const T* bias, View y);
/// Computes dx (+)= dy w^T. REQUIRES: dx is neither dy nor x.
template <class T, class View>
void linear_backward_input(View dy, ConstMatrixView<T> weight, MatrixView<T> dx, bool accumulate);
/// Computes dw += x^T dy, db += the sum of the rows of dy; `dbias` may be null.
template <class T, class View>
void linear_backward_weight(ConstMatrixView<T> x, View dy, MatrixView<T> dweight, T* dbias);
/// Adds the sum of the rows of `matrix` to `sums`.
template <class T, class View>
void add_rows(View matrix, T* sums);

/// Computes to += x, column by column.
template <class T>
void add_columns(ConstStridedView<T> x, StridedView<T> to);
/// Computes to = x, column by column.
template <class T>
void copy_columns(ConstStridedView<T> x, StridedView<T> to);
/// Computes to = x - to.
template <class T>
void take_columns_from(ConstStridedView<T> x, StridedView<T> to);

/// Computes to += from, `count` elements.
template <class T>
void add_to(const T* from, std::int64_t count, T* to);

/// Computes GELU in the tanh form: x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). Source:
/// Hendrycks and Gimpel, arXiv 1606.08415.
template <class T>
void gelu_forward(ConstMatrixView<T> x, MatrixView<T> y);
template <class T>
void gelu_backward_input(ConstMatrixView<T> x, ConstMatrixView<T> dy, MatrixView<T> dx);

template <class T>
void relu_forward(MatrixView<T> x);
/// Zeroes dx where `made`, the output of a Relu, is zero.
template <class T>
void relu_mask(ConstMatrixView<T> made, MatrixView<T> dx);

template <class T>
void scale_forward(ConstMatrixView<T> x, const T* weight, MatrixView<T> y);
template <class T>
void scale_backward_input(ConstMatrixView<T> dy, const T* weight, MatrixView<T> dx);
template <class T>
void scale_backward_weight(ConstMatrixView<T> x, ConstMatrixView<T> dy, T* dweight);

/// Computes y(r) = table(tokens[r]) + positions(r modulo `rows_per_sample`); `positions` may be
/// null.
template <class T>
void embedding_forward(const std::int64_t* tokens, ConstMatrixView<T> table, const T* positions,
                       int rows_per_sample, MatrixView<T> y);
template <class T>
void embedding_backward_weight(const std::int64_t* tokens, ConstMatrixView<T> dy,
                               MatrixView<T> dtable, T* dpositions, int rows_per_sample);

/// Returns the mean over rows of -log softmax(logits)(target), of those that have a target: others
/// have one below 0.
template <class T>
double cross_entropy_forward(ConstMatrixView<T> logits, const std::int32_t* targets);
/// Computes its gradient: (softmax - one) / rows; 0 in rows without a target.
template <class T>
void cross_entropy_backward(ConstMatrixView<T> logits, const std::int32_t* targets,
                            MatrixView<T> dlogits);

}  // namespace interlock
