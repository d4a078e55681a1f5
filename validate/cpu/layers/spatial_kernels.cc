// Convolution and pooling.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cpu/layers/spatial_kernels.h"

#include <algorithm>

namespace interlock {
namespace {

/// The overlap of a row of the kernel with a row of an image: the outputs it reaches, and the
/// pixels that it reads for them, one every `stride`.
struct KernelReach {
  int first = 0, count = 0;  // outputs of a row
  int pixel = 0;             // that the first one reads
};

KernelReach reach(int tap, int kernel, int stride, int pixels) {
  const int made = (pixels + stride - 1) / stride, offset = tap - kernel / 2;
  KernelReach reached;
  reached.first = offset < 0 ? (-offset + stride - 1) / stride : 0;
  const int last = std::min(made - 1, (pixels - 1 - offset) / stride);
  reached.count = pixels - 1 - offset < 0 ? 0 : std::max(0, last - reached.first + 1);
  reached.pixel = reached.first * stride + offset;
  return reached;
}

/// Calls `visit(pixel, output, count, tap)` for every tap of the kernel and every row of the output
/// that it reaches: `count` outputs from `output` on, which read pixels from `pixel` on, one every
/// stride.
template <class Visit>
void for_each_tap(const ConvolutionSizes& s, const Visit& visit) {
  const int rows = (s.rows + s.stride - 1) / s.stride;
  const int columns = (s.columns + s.stride - 1) / s.stride;
  for (int sample = 0; sample < s.samples; ++sample) {
    for (int tap = 0; tap < s.kernel * s.kernel; ++tap) {
      const KernelReach down = reach(tap / s.kernel, s.kernel, s.stride, s.rows);
      const KernelReach across = reach(tap % s.kernel, s.kernel, s.stride, s.columns);
      if (across.count == 0) continue;
      for (int i = 0; i < down.count; ++i) {
        const std::int64_t row = down.pixel + std::int64_t{i} * s.stride;
        const std::int64_t pixel = (std::int64_t{sample} * s.rows + row) * s.columns + across.pixel;
        const std::int64_t output =
            (std::int64_t{sample} * rows + down.first + i) * columns + across.first;
        visit(pixel, output, across.count, tap);
      }
    }
  }
}

std::int64_t positions_made(const ConvolutionSizes& s) {
  const std::int64_t rows = (s.rows + s.stride - 1) / s.stride;
  return rows * ((s.columns + s.stride - 1) / s.stride) * s.samples;
}

}  // namespace

template <class T>
void convolution_forward(const ConvolutionSizes& s, const T* x, const T* weight, const T* bias,
                         T* y) {
  MatrixView<T> made(y, positions_made(s), s.outputs);
  for (Eigen::Index r = 0; r < made.rows(); ++r) {
    for (int c = 0; c < s.outputs; ++c) made(r, c) = bias == nullptr ? T(0) : bias[c];
  }
  for_each_tap(s, [&](std::int64_t pixel, std::int64_t output, int count, std::int64_t tap) {
    const ConstStridedView<T> read(x + pixel * s.inputs, count, s.inputs,
                                   Eigen::OuterStride<>(std::int64_t{s.stride} * s.inputs));
    const ConstMatrixView<T> w(weight + tap * s.inputs * s.outputs, s.inputs, s.outputs);
    MatrixView<T>(y + output * s.outputs, count, s.outputs).noalias() += read * w;
  });
}

template <class T>
void convolution_backward_input(const ConvolutionSizes& s, const T* dy, const T* weight, T* dx,
                                bool accumulate) {
  if (!accumulate) std::fill_n(dx, std::int64_t{s.samples} * s.rows * s.columns * s.inputs, T(0));
  for_each_tap(s, [&](std::int64_t pixel, std::int64_t output, int count, std::int64_t tap) {
    const ConstMatrixView<T> g(dy + output * s.outputs, count, s.outputs);
    const ConstMatrixView<T> w(weight + tap * s.inputs * s.outputs, s.inputs, s.outputs);
    StridedView<T>(dx + pixel * s.inputs, count, s.inputs,
                   Eigen::OuterStride<>(std::int64_t{s.stride} * s.inputs))
        .noalias() += g * w.transpose();
  });
}

template <class T>
void convolution_backward_weight(const ConvolutionSizes& s, const T* x, const T* dy, T* dweight) {
  for_each_tap(s, [&](std::int64_t pixel, std::int64_t output, int count, std::int64_t tap) {
    const ConstStridedView<T> read(x + pixel * s.inputs, count, s.inputs,
                                   Eigen::OuterStride<>(std::int64_t{s.stride} * s.inputs));
    const ConstMatrixView<T> g(dy + output * s.outputs, count, s.outputs);
    MatrixView<T>(dweight + tap * s.inputs * s.outputs, s.inputs, s.outputs).noalias() +=
        read.transpose() * g;
  });
}

template <class T>
void average_pool_forward(ConstMatrixView<T> x, int pixels, MatrixView<T> y) {
  for (Eigen::Index sample = 0; sample < y.rows(); ++sample) {
    for (Eigen::Index c = 0; c < y.cols(); ++c) {
      T sum = 0;
      for (int p = 0; p < pixels; ++p) sum += x(sample * pixels + p, c);
      y(sample, c) = sum / static_cast<T>(pixels);
    }
  }
}

template <class T>
void average_pool_backward_input(ConstMatrixView<T> x, ConstMatrixView<T> dy, int pixels,
                                 bool rectified, MatrixView<T> dx) {
  for (Eigen::Index r = 0; r < dx.rows(); ++r) {
    for (Eigen::Index c = 0; c < dx.cols(); ++c) {
      const bool passes = !rectified || x(r, c) > 0;
      dx(r, c) = passes ? dy(r / pixels, c) / static_cast<T>(pixels) : T(0);
    }
  }
}

// A type in parentheses is no type.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define INTERLOCK_KERNELS(T)                                                                       \
  template void convolution_forward<T>(const ConvolutionSizes&, const T*, const T*, const T*, T*); \
  template void convolution_backward_input<T>(const ConvolutionSizes&, const T*, const T*, T*,     \
                                              bool);                                               \
  template void convolution_backward_weight<T>(const ConvolutionSizes&, const T*, const T*, T*);   \
  template void average_pool_forward<T>(ConstMatrixView<T>, int, MatrixView<T>);                   \
  template void average_pool_backward_input<T>(ConstMatrixView<T>, ConstMatrixView<T>, int, bool,  \
                                               MatrixView<T>)
// NOLINTEND(bugprone-macro-parentheses)
INTERLOCK_KERNELS(float);
INTERLOCK_KERNELS(double);
#undef INTERLOCK_KERNELS

}  // namespace interlock
