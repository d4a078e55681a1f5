// Causal attention, block by block.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cpu/layers/attention_kernels.h"

#include <algorithm>
#include <cmath>

namespace interlock {
namespace {

template <class T>
T attention_scale(const AttentionShape& shape) {
  return 1 / std::sqrt(static_cast<T>(shape.size));
}

}  // namespace

template <class T>
StridedView<T> block_of(const AttentionShape& shape, std::int64_t block, T* tensor, int parts,
                        int part) {
  const std::int64_t sample = block / shape.heads, head = block % shape.heads;
  const std::int64_t width = std::int64_t{shape.heads} * shape.size, stride = parts * width;
  T* begin = tensor + sample * shape.positions * stride + part * width + head * shape.size;
  return {begin, shape.positions, shape.size, Eigen::OuterStride<>(stride)};
}

template <class T>
void block_scores(const StridedView<T>& query, const StridedView<T>& key, MatrixView<T> scores) {
  scores.noalias() = query * key.transpose();
}

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

template <class T>
void block_values(ConstMatrixView<T> probabilities, const StridedView<T>& value, StridedView<T> y) {
  y.noalias() = probabilities * value;
}

template <class T>
void block_values_backward(ValuesBackward<T> t) {
  t.dprobabilities.noalias() = t.dy * t.value.transpose();
  t.dvalue.noalias() = t.probabilities.transpose() * t.dy;
}

template <class T>
void causal_softmax_backward(ConstMatrixView<T> probabilities, T scale, MatrixView<T> gradient) {
  for (Eigen::Index r = 0; r < gradient.rows(); ++r) {
    T along = 0;
    for (Eigen::Index c = 0; c <= r; ++c) along += gradient(r, c) * probabilities(r, c);
    for (Eigen::Index c = 0; c < gradient.cols(); ++c) {
      gradient(r, c) = probabilities(r, c) * (gradient(r, c) - along) * scale;
    }
  }
}

template <class T>
void block_scores_backward(ScoresBackward<T> t) {
  if (t.scratch.size() == 0) {
    t.dquery.noalias() = t.dscores * t.key;
    t.dkey.noalias() = t.dscores.transpose() * t.query;
    return;
  }
  t.scratch.noalias() = t.dscores * t.key;
  t.dkey.noalias() = t.dscores.transpose() * t.query;
  t.dquery = t.scratch;
}

template <class T>
void attention_forward(const AttentionShape& shape, ConstMatrixView<T> qkv,
                       MatrixView<T> probabilities, MatrixView<T> y) {
  const std::int64_t n = shape.positions;
  // Views of what is only read are not const, so that one type of view serves all kernels.
  T* all = const_cast<T*>(qkv.data());
  for (std::int64_t block = 0; block < probabilities.rows() / n; ++block) {
    const MatrixView<T> scores(probabilities.data() + block * n * n, n, n);
    block_scores<T>(block_of(shape, block, all, kParts, kQuery),
                    block_of(shape, block, all, kParts, kKey), scores);
    causal_softmax(attention_scale<T>(shape), scores);
    block_values<T>({scores.data(), n, n}, block_of(shape, block, all, kParts, kValue),
                    block_of(shape, block, y.data()));
  }
}

template <class T>
void attention_backward_input(const AttentionShape& shape, AttentionBackward<T> t) {
  const std::int64_t n = shape.positions;
  const bool in_place = t.dqkv.data() == t.qkv.data();
  const MatrixView<T> ds(t.scratch, n, n), dq(t.scratch + n * n, in_place ? n : 0, shape.size);
  T* all = const_cast<T*>(t.qkv.data());
  T* made = t.dqkv.data();
  for (std::int64_t block = 0; block < t.probabilities.rows() / n; ++block) {
    const auto of = [&](T* tensor, int part) {
      return block_of(shape, block, tensor, kParts, part);
    };
    const ConstMatrixView<T> p(t.probabilities.data() + block * n * n, n, n);
    block_values_backward<T>({p, of(all, kValue),
                              block_of(shape, block, const_cast<T*>(t.dy.data())), ds,
                              of(made, kValue)});
    causal_softmax_backward<T>(p, attention_scale<T>(shape), ds);
    block_scores_backward<T>(
        {{ds.data(), n, n}, of(all, kQuery), of(all, kKey), of(made, kQuery), of(made, kKey), dq});
  }
}

// A type in parentheses is no type.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define INTERLOCK_KERNELS(T)                                                                   \
  template StridedView<T> block_of<T>(const AttentionShape&, std::int64_t, T*, int, int);      \
  template void block_scores<T>(const StridedView<T>&, const StridedView<T>&, MatrixView<T>);  \
  template void causal_softmax<T>(T, MatrixView<T>);                                           \
  template void block_values<T>(ConstMatrixView<T>, const StridedView<T>&, StridedView<T>);    \
  template void block_values_backward<T>(ValuesBackward<T>);                                   \
  template void causal_softmax_backward<T>(ConstMatrixView<T>, T, MatrixView<T>);              \
  template void block_scores_backward<T>(ScoresBackward<T>);                                   \
  template void attention_forward<T>(const AttentionShape&, ConstMatrixView<T>, MatrixView<T>, \
                                     MatrixView<T>);                                           \
  template void attention_backward_input<T>(const AttentionShape&, AttentionBackward<T>)
// NOLINTEND(bugprone-macro-parentheses)
INTERLOCK_KERNELS(float);
INTERLOCK_KERNELS(double);
#undef INTERLOCK_KERNELS

}  // namespace interlock
