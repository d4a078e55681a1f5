// Layer norm and batch norm.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cpu/layers/norm_kernels.h"

#include <cmath>
#include <vector>

namespace interlock {
namespace {

template <class T>
struct Moments {
  T mean, scale;  // of `scale`: 1 / sqrt(variance + epsilon)
};

template <class T>
Moments<T> moments_of_row(const ConstStridedView<T>& x, Eigen::Index r) {
  T sum = 0, squares = 0;
  for (Eigen::Index c = 0; c < x.cols(); ++c) sum += x(r, c);
  const T count = static_cast<T>(x.cols()), mean = sum / count;
  for (Eigen::Index c = 0; c < x.cols(); ++c) squares += (x(r, c) - mean) * (x(r, c) - mean);
  return {mean, 1 / std::sqrt(squares / count + static_cast<T>(kNormEpsilon))};
}

/// Returns the moments of every column.
template <class T>
std::vector<Moments<T>> moments_of_columns(const ConstMatrixView<T>& x) {
  std::vector<Moments<T>> moments(static_cast<std::size_t>(x.cols()), Moments<T>{0, 0});
  const T count = static_cast<T>(x.rows());
  for (Eigen::Index r = 0; r < x.rows(); ++r) {
    for (Eigen::Index c = 0; c < x.cols(); ++c) moments[c].mean += x(r, c);
  }
  for (Moments<T>& one : moments) one.mean /= count;
  for (Eigen::Index r = 0; r < x.rows(); ++r) {
    for (Eigen::Index c = 0; c < x.cols(); ++c) {
      const T off = x(r, c) - moments[c].mean;
      moments[c].scale += off * off;
    }
  }
  for (Moments<T>& one : moments) {
    one.scale = 1 / std::sqrt(one.scale / count + static_cast<T>(kNormEpsilon));
  }
  return moments;
}

}  // namespace

template <class T>
void layer_norm_forward(ConstStridedView<T> x, const T* gain, const T* shift, MatrixView<T> y) {
  for (Eigen::Index r = 0; r < x.rows(); ++r) {
    const Moments<T> m = moments_of_row(x, r);
    for (Eigen::Index c = 0; c < x.cols(); ++c) {
      y(r, c) = (x(r, c) - m.mean) * m.scale * gain[c] + shift[c];
    }
  }
}

template <class T>
void layer_norm_backward_input(ConstStridedView<T> x, const T* gain, ConstMatrixView<T> dy,
                               StridedView<T> dx, bool accumulate) {
  const T count = static_cast<T>(x.cols());
  for (Eigen::Index r = 0; r < x.rows(); ++r) {
    const Moments<T> m = moments_of_row(x, r);
    T sum = 0, along = 0;  // of the normed row's gradient: its sum, and along the normed row
    for (Eigen::Index c = 0; c < x.cols(); ++c) {
      const T g = dy(r, c) * gain[c];
      sum += g;
      along += g * (x(r, c) - m.mean) * m.scale;
    }
    for (Eigen::Index c = 0; c < x.cols(); ++c) {
      const T normed = (x(r, c) - m.mean) * m.scale;
      const T g = (dy(r, c) * gain[c] - sum / count - normed * along / count) * m.scale;
      dx(r, c) = accumulate ? dx(r, c) + g : g;
    }
  }
}

template <class T>
void layer_norm_backward_weight(ConstStridedView<T> x, ConstMatrixView<T> dy, T* dgain, T* dshift) {
  for (Eigen::Index r = 0; r < x.rows(); ++r) {
    const Moments<T> m = moments_of_row(x, r);
    for (Eigen::Index c = 0; c < x.cols(); ++c) {
      dgain[c] += dy(r, c) * (x(r, c) - m.mean) * m.scale;
      dshift[c] += dy(r, c);
    }
  }
}

template <class T>
void batch_norm_forward(ConstMatrixView<T> x, BatchNormWeights<T> weights, MatrixView<T> y,
                        bool accumulate) {
  const std::vector<Moments<T>> moments = moments_of_columns(x);
  for (Eigen::Index r = 0; r < x.rows(); ++r) {
    for (Eigen::Index c = 0; c < x.cols(); ++c) {
      const T made =
          (x(r, c) - moments[c].mean) * moments[c].scale * weights.gain[c] + weights.shift[c];
      y(r, c) = accumulate ? y(r, c) + made : made;
    }
  }
}

template <class T>
void batch_norm_backward_input(ConstMatrixView<T> x, const T* gain, ConstMatrixView<T> dy,
                               MatrixView<T> dx) {
  const std::vector<Moments<T>> moments = moments_of_columns(x);
  const auto columns = static_cast<std::size_t>(x.cols());
  std::vector<T> sums(columns, T(0)), along(columns, T(0));
  const T count = static_cast<T>(x.rows());
  for (Eigen::Index r = 0; r < x.rows(); ++r) {
    for (Eigen::Index c = 0; c < x.cols(); ++c) {
      sums[c] += dy(r, c);
      along[c] += dy(r, c) * (x(r, c) - moments[c].mean) * moments[c].scale;
    }
  }
  for (Eigen::Index r = 0; r < x.rows(); ++r) {
    for (Eigen::Index c = 0; c < x.cols(); ++c) {
      const T normed = (x(r, c) - moments[c].mean) * moments[c].scale;
      dx(r, c) =
          gain[c] * moments[c].scale * (dy(r, c) - sums[c] / count - normed * along[c] / count);
    }
  }
}

template <class T>
void batch_norm_backward_weight(ConstMatrixView<T> x, ConstMatrixView<T> dy, T* dgain, T* dshift) {
  const std::vector<Moments<T>> moments = moments_of_columns(x);
  for (Eigen::Index r = 0; r < x.rows(); ++r) {
    for (Eigen::Index c = 0; c < x.cols(); ++c) {
      dgain[c] += dy(r, c) * (x(r, c) - moments[c].mean) * moments[c].scale;
      dshift[c] += dy(r, c);
    }
  }
}

// A type in parentheses is no type.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define INTERLOCK_KERNELS(T)                                                                    \
  template void layer_norm_forward<T>(ConstStridedView<T>, const T*, const T*, MatrixView<T>);  \
  template void layer_norm_backward_input<T>(ConstStridedView<T>, const T*, ConstMatrixView<T>, \
                                             StridedView<T>, bool);                             \
  template void layer_norm_backward_weight<T>(ConstStridedView<T>, ConstMatrixView<T>, T*, T*); \
  template void batch_norm_forward<T>(ConstMatrixView<T>, BatchNormWeights<T>, MatrixView<T>,   \
                                      bool);                                                    \
  template void batch_norm_backward_input<T>(ConstMatrixView<T>, const T*, ConstMatrixView<T>,  \
                                             MatrixView<T>);                                    \
  template void batch_norm_backward_weight<T>(ConstMatrixView<T>, ConstMatrixView<T>, T*, T*)
// NOLINTEND(bugprone-macro-parentheses)
INTERLOCK_KERNELS(float);
INTERLOCK_KERNELS(double);
#undef INTERLOCK_KERNELS

}  // namespace interlock
