// Attention, convolution and pooling.
// SPDX-License-Identifier: Apache-2.0
#include "validate/network/layers/spatial_kernels.h"

#include <algorithm>
#include <cmath>

namespace interlock {
namespace {

/// A head of a sample: its columns of rows that are `stride` long.
template <class T>
StridedView<T> head_view(T* data, const AttentionShape& shape, std::int64_t stride) {
  return {data, shape.positions, shape.size, Eigen::OuterStride<>(stride)};
}
template <class T>
ConstStridedView<T> head_view(const T* data, const AttentionShape& shape, std::int64_t stride) {
  return {data, shape.positions, shape.size, Eigen::OuterStride<>(stride)};
}

template <class T>
T attention_scale(const AttentionShape& shape) {
  return 1 / std::sqrt(static_cast<T>(shape.size));
}

/// In each row the softmax of what is not later, and zeros.
template <class T>
void causal_softmax(T scale, MatrixView<T> scores) {
  for (Eigen::Index r = 0; r < scores.rows(); ++r) {
    T most = scores(r, 0), total = 0;
    for (Eigen::Index c = 1; c <= r; ++c) most = std::max(most, scores(r, c));
    for (Eigen::Index c = 0; c < scores.cols(); ++c) {
      scores(r, c) = c <= r ? std::exp((scores(r, c) - most) * scale) : T(0);
      total += scores(r, c);
    }
    for (Eigen::Index c = 0; c <= r; ++c) scores(r, c) /= total;
  }
}

/// The gradient of the softmax becomes that of q k^T.
template <class T>
void softmax_backward(const ConstMatrixView<T>& probabilities, T scale, MatrixView<T> gradient) {
  for (Eigen::Index r = 0; r < gradient.rows(); ++r) {
    T along = 0;
    for (Eigen::Index c = 0; c <= r; ++c) along += gradient(r, c) * probabilities(r, c);
    for (Eigen::Index c = 0; c < gradient.cols(); ++c) {
      gradient(r, c) = probabilities(r, c) * (gradient(r, c) - along) * scale;
    }
  }
}

/// Where a row of the kernel meets a row of an image: the outputs it reaches, and the pixels that
/// it reads for them, one every `stride`.
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
void attention_forward(const AttentionShape& shape, ConstMatrixView<T> qkv,
                       MatrixView<T> probabilities, MatrixView<T> y) {
  const std::int64_t n = shape.positions, width = y.cols();
  for (std::int64_t block = 0; block < probabilities.rows() / n; ++block) {
    const std::int64_t sample = block / shape.heads, head = block % shape.heads;
    const T* q = qkv.data() + sample * n * 3 * width + head * shape.size;
    MatrixView<T> scores(probabilities.data() + block * n * n, n, n);
    scores.noalias() =
        head_view(q, shape, 3 * width) * head_view(q + width, shape, 3 * width).transpose();
    causal_softmax(attention_scale<T>(shape), scores);
    T* made = y.data() + sample * n * width + head * shape.size;
    head_view(made, shape, width).noalias() = scores * head_view(q + 2 * width, shape, 3 * width);
  }
}

template <class T>
void attention_backward_input(const AttentionShape& shape, AttentionBackward<T> t) {
  const std::int64_t n = shape.positions, width = t.dy.cols();
  const std::int64_t wide = 3 * width;
  MatrixView<T> ds(t.scratch, n, n), dq(t.scratch + n * n, n, shape.size);
  for (std::int64_t block = 0; block < t.probabilities.rows() / n; ++block) {
    const std::int64_t sample = block / shape.heads, head = block % shape.heads;
    const std::int64_t at = sample * n * wide + head * shape.size;
    const T* q = t.qkv.data() + at;
    T* made = t.dqkv.data() + at;
    const ConstMatrixView<T> p(t.probabilities.data() + block * n * n, n, n);
    const auto dy = head_view(t.dy.data() + sample * n * width + head * shape.size, shape, width);
    // Each of q, k and v is read for the last time before its gradient is written.
    ds.noalias() = dy * head_view(q + 2 * width, shape, wide).transpose();
    head_view(made + 2 * width, shape, wide).noalias() = p.transpose() * dy;
    softmax_backward(p, attention_scale<T>(shape), ds);
    dq.noalias() = ds * head_view(q + width, shape, wide);
    head_view(made + width, shape, wide).noalias() = ds.transpose() * head_view(q, shape, wide);
    head_view(made, shape, wide) = dq;
  }
}

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
  template void attention_forward<T>(const AttentionShape&, ConstMatrixView<T>, MatrixView<T>,     \
                                     MatrixView<T>);                                               \
  template void attention_backward_input<T>(const AttentionShape&, AttentionBackward<T>);          \
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
