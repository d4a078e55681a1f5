// Products, activations, tables and losses.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cpu/layers/dense_kernels.h"

#include <algorithm>
#include <cmath>

namespace interlock {
namespace {

constexpr double kGeluFactor = 0.7978845608028654;  // sqrt(2 / pi)
constexpr double kGeluCubic = 0.044715;

}  // namespace

template <class T, class View>
void linear_forward(ConstMatrixView<T> x, ConstMatrixView<T> weight, const T* bias, View y) {
  y.noalias() = x * weight;
  if (bias == nullptr) return;
  for (Eigen::Index r = 0; r < y.rows(); ++r) {
    for (Eigen::Index c = 0; c < y.cols(); ++c) y(r, c) += bias[c];
  }
}

template <class T, class View>
void linear_backward_input(View dy, ConstMatrixView<T> weight, MatrixView<T> dx, bool accumulate) {
  if (accumulate) {
    dx.noalias() += dy * weight.transpose();
  } else {
    dx.noalias() = dy * weight.transpose();
  }
}

template <class T, class View>
void linear_backward_weight(ConstMatrixView<T> x, View dy, MatrixView<T> dweight, T* dbias) {
  dweight.noalias() += x.transpose() * dy;
  if (dbias != nullptr) add_rows<T>(dy, dbias);
}

template <class T, class View>
void add_rows(View matrix, T* sums) {
  for (Eigen::Index r = 0; r < matrix.rows(); ++r) {
    for (Eigen::Index c = 0; c < matrix.cols(); ++c) sums[c] += matrix(r, c);
  }
}

template <class T>
void add_columns(ConstStridedView<T> x, StridedView<T> to) {
  for (Eigen::Index r = 0; r < x.rows(); ++r) {
    for (Eigen::Index c = 0; c < x.cols(); ++c) to(r, c) += x(r, c);
  }
}

template <class T>
void copy_columns(ConstStridedView<T> x, StridedView<T> to) {
  for (Eigen::Index r = 0; r < x.rows(); ++r) {
    for (Eigen::Index c = 0; c < x.cols(); ++c) to(r, c) = x(r, c);
  }
}

template <class T>
void take_columns_from(ConstStridedView<T> x, StridedView<T> to) {
  for (Eigen::Index r = 0; r < x.rows(); ++r) {
    for (Eigen::Index c = 0; c < x.cols(); ++c) to(r, c) = x(r, c) - to(r, c);
  }
}

template <class T>
void add_to(const T* from, std::int64_t count, T* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

template <class T>
void gelu_forward(ConstMatrixView<T> x, MatrixView<T> y) {
  const T factor = static_cast<T>(kGeluFactor), cubic = static_cast<T>(kGeluCubic);
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    const T v = x.data()[i];
    y.data()[i] = v / 2 * (1 + std::tanh(factor * (v + cubic * v * v * v)));
  }
}

template <class T>
void gelu_backward_input(ConstMatrixView<T> x, ConstMatrixView<T> dy, MatrixView<T> dx) {
  const T factor = static_cast<T>(kGeluFactor), cubic = static_cast<T>(kGeluCubic);
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    const T v = x.data()[i];
    const T t = std::tanh(factor * (v + cubic * v * v * v));
    const T inner = factor * (1 + 3 * cubic * v * v);
    dx.data()[i] = dy.data()[i] * ((1 + t) / 2 + v / 2 * (1 - t * t) * inner);
  }
}

template <class T>
void relu_forward(MatrixView<T> x) {
  for (Eigen::Index i = 0; i < x.size(); ++i) x.data()[i] = x.data()[i] > 0 ? x.data()[i] : T(0);
}

template <class T>
void relu_mask(ConstMatrixView<T> made, MatrixView<T> dx) {
  for (Eigen::Index i = 0; i < dx.size(); ++i) {
    dx.data()[i] = made.data()[i] > 0 ? dx.data()[i] : T(0);
  }
}

template <class T>
void scale_forward(ConstMatrixView<T> x, const T* weight, MatrixView<T> y) {
  for (Eigen::Index r = 0; r < x.rows(); ++r) {
    for (Eigen::Index c = 0; c < x.cols(); ++c) y(r, c) = x(r, c) * weight[c];
  }
}

template <class T>
void scale_backward_input(ConstMatrixView<T> dy, const T* weight, MatrixView<T> dx) {
  scale_forward<T>(dy, weight, dx);
}

template <class T>
void scale_backward_weight(ConstMatrixView<T> x, ConstMatrixView<T> dy, T* dweight) {
  for (Eigen::Index r = 0; r < x.rows(); ++r) {
    for (Eigen::Index c = 0; c < x.cols(); ++c) dweight[c] += dy(r, c) * x(r, c);
  }
}

template <class T>
void embedding_forward(const std::int64_t* tokens, ConstMatrixView<T> table, const T* positions,
                       int rows_per_sample, MatrixView<T> y) {
  for (Eigen::Index r = 0; r < y.rows(); ++r) {
    const T* place = positions == nullptr ? nullptr : positions + r % rows_per_sample * y.cols();
    for (Eigen::Index c = 0; c < y.cols(); ++c) {
      y(r, c) = table(tokens[r], c) + (place == nullptr ? T(0) : place[c]);
    }
  }
}

template <class T>
void embedding_backward_weight(const std::int64_t* tokens, ConstMatrixView<T> dy,
                               MatrixView<T> dtable, T* dpositions, int rows_per_sample) {
  for (Eigen::Index r = 0; r < dy.rows(); ++r) {
    T* place = dpositions == nullptr ? nullptr : dpositions + r % rows_per_sample * dy.cols();
    for (Eigen::Index c = 0; c < dy.cols(); ++c) {
      dtable(tokens[r], c) += dy(r, c);
      if (place != nullptr) place[c] += dy(r, c);
    }
  }
}

namespace {

std::int64_t rows_with_targets(const std::int32_t* targets, std::int64_t rows) {
  return std::count_if(targets, targets + rows, [](std::int32_t target) { return target >= 0; });
}

}  // namespace

template <class T>
double cross_entropy_forward(ConstMatrixView<T> logits, const std::int32_t* targets) {
  double sum = 0;
  for (Eigen::Index r = 0; r < logits.rows(); ++r) {
    if (targets[r] < 0) continue;
    const T most = logits.row(r).maxCoeff();
    T total = 0;
    for (Eigen::Index c = 0; c < logits.cols(); ++c) total += std::exp(logits(r, c) - most);
    sum += static_cast<double>(std::log(total) + most - logits(r, targets[r]));
  }
  return sum / static_cast<double>(rows_with_targets(targets, logits.rows()));
}

template <class T>
void cross_entropy_backward(ConstMatrixView<T> logits, const std::int32_t* targets,
                            MatrixView<T> dlogits) {
  const T rows = static_cast<T>(rows_with_targets(targets, logits.rows()));
  for (Eigen::Index r = 0; r < logits.rows(); ++r) {
    if (targets[r] < 0) {
      dlogits.row(r).setZero();
      continue;
    }
    const T most = logits.row(r).maxCoeff();
    T total = 0;
    for (Eigen::Index c = 0; c < logits.cols(); ++c) total += std::exp(logits(r, c) - most);
    for (Eigen::Index c = 0; c < logits.cols(); ++c) {
      const T share = std::exp(logits(r, c) - most) / total;
      dlogits(r, c) = (share - (c == targets[r] ? T(1) : T(0))) / rows;
    }
  }
}

// A type in parentheses is no type.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define INTERLOCK_PRODUCTS(T, View)                                                                \
  template void linear_forward<T>(ConstMatrixView<T>, ConstMatrixView<T>, const T*, View<T>);      \
  template void linear_backward_input<T>(Const##View<T>, ConstMatrixView<T>, MatrixView<T>, bool); \
  template void linear_backward_weight<T>(ConstMatrixView<T>, Const##View<T>, MatrixView<T>, T*);  \
  template void add_rows<T>(Const##View<T>, T*)
#define INTERLOCK_KERNELS(T)                                                                   \
  INTERLOCK_PRODUCTS(T, MatrixView);                                                           \
  INTERLOCK_PRODUCTS(T, StridedView);                                                          \
  template void add_columns<T>(ConstStridedView<T>, StridedView<T>);                           \
  template void copy_columns<T>(ConstStridedView<T>, StridedView<T>);                          \
  template void take_columns_from<T>(ConstStridedView<T>, StridedView<T>);                     \
  template void add_to<T>(const T*, std::int64_t, T*);                                         \
  template void gelu_forward<T>(ConstMatrixView<T>, MatrixView<T>);                            \
  template void gelu_backward_input<T>(ConstMatrixView<T>, ConstMatrixView<T>, MatrixView<T>); \
  template void relu_forward<T>(MatrixView<T>);                                                \
  template void relu_mask<T>(ConstMatrixView<T>, MatrixView<T>);                               \
  template void scale_forward<T>(ConstMatrixView<T>, const T*, MatrixView<T>);                 \
  template void scale_backward_input<T>(ConstMatrixView<T>, const T*, MatrixView<T>);          \
  template void scale_backward_weight<T>(ConstMatrixView<T>, ConstMatrixView<T>, T*);          \
  template void embedding_forward<T>(const std::int64_t*, ConstMatrixView<T>, const T*, int,   \
                                     MatrixView<T>);                                           \
  template void embedding_backward_weight<T>(const std::int64_t*, ConstMatrixView<T>,          \
                                             MatrixView<T>, T*, int);                          \
  template double cross_entropy_forward<T>(ConstMatrixView<T>, const std::int32_t*);           \
  template void cross_entropy_backward<T>(ConstMatrixView<T>, const std::int32_t*, MatrixView<T>)
// NOLINTEND(bugprone-macro-parentheses)
INTERLOCK_KERNELS(float);
INTERLOCK_KERNELS(double);
#undef INTERLOCK_KERNELS
#undef INTERLOCK_PRODUCTS

}  // namespace interlock
