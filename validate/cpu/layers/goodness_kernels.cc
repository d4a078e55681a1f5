// Goodness of rows: its logistic loss, the gradient of that, and rows of one length.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cpu/layers/goodness_kernels.h"

#include <algorithm>
#include <cmath>

#include "validate/network/contrast.h"

namespace interlock {
namespace {

constexpr double kEpsilon = 1e-5;

/// Returns how far the goodness of a row is on the wrong side of the threshold.
template <class T>
double wrong_by(ConstMatrixView<T> x, Eigen::Index row) {
  const double goodness =
      static_cast<double>(x.row(row).squaredNorm()) / static_cast<double>(x.cols());
  const bool is_true = 2 * row < x.rows();
  return is_true ? kGoodnessThreshold - goodness : goodness - kGoodnessThreshold;
}

}  // namespace

template <class T>
double goodness_forward(ConstMatrixView<T> x, MatrixView<T> y) {
  double sum = 0;
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    const double wrong = wrong_by<T>(x, row);
    sum += std::max(wrong, 0.0) + std::log1p(std::exp(-std::abs(wrong)));
    const T square = x.row(row).squaredNorm() / static_cast<T>(x.cols());
    y.row(row) = x.row(row) / std::sqrt(square + static_cast<T>(kEpsilon));
  }
  return sum / static_cast<double>(x.rows());
}

template <class T>
void goodness_backward(ConstMatrixView<T> x, MatrixView<T> dx) {
  const double scale = 2.0 / static_cast<double>(x.rows() * x.cols());
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    const double share = 1 / (1 + std::exp(-wrong_by<T>(x, row)));
    const double sign = 2 * row < x.rows() ? -1 : 1;
    dx.row(row) = x.row(row) * static_cast<T>(sign * share * scale);
  }
}

template double goodness_forward<float>(ConstMatrixView<float>, MatrixView<float>);
template double goodness_forward<double>(ConstMatrixView<double>, MatrixView<double>);
template void goodness_backward<float>(ConstMatrixView<float>, MatrixView<float>);
template void goodness_backward<double>(ConstMatrixView<double>, MatrixView<double>);

}  // namespace interlock
