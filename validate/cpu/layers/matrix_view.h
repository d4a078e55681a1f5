// MatrixView: row-major matrices in memory of another owner, as Eigen sees them.
// SPDX-License-Identifier: Apache-2.0
//
// Products are always written into a matrix of the right size with noalias() = or +=: Eigen takes
// another kernel for `Matrix d = a * b` than for `d = a * b`, and results would differ in the last
// bit. Sums over rows or columns are loops here, so that their order is known.
#pragma once

#include <Eigen/Core>
#include <cstdint>

namespace interlock {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using MatrixView = Eigen::Map<Matrix<T>>;
template <class T>
using ConstMatrixView = Eigen::Map<const Matrix<T>>;
/// With a distance between rows that is more than their length.
template <class T>
using StridedView = Eigen::Map<Matrix<T>, 0, Eigen::OuterStride<>>;
template <class T>
using ConstStridedView = Eigen::Map<const Matrix<T>, 0, Eigen::OuterStride<>>;

/// Returns a whole matrix, for kernels that take some of the columns of one.
template <class T>
StridedView<T> all_columns(MatrixView<T> matrix) {
  return {matrix.data(), matrix.rows(), matrix.cols(), Eigen::OuterStride<>(matrix.cols())};
}
template <class T>
ConstStridedView<T> all_columns(ConstMatrixView<T> matrix) {
  return {matrix.data(), matrix.rows(), matrix.cols(), Eigen::OuterStride<>(matrix.cols())};
}

}  // namespace interlock
