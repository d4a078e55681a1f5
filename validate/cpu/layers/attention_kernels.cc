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

namespace {

/// Queries that fused kernels work on at a time: their scores are all that is there of the scores.
constexpr Eigen::Index kQueries = 32;

/// Queries [first, first + rows) of a block, which see the first `first + rows` tokens or fewer.
struct QueryRange {
  Eigen::Index first = 0, rows = 0;
  Eigen::Index seen() const { return first + rows; }
};

template <class T>
StridedView<T> rows_of(const StridedView<T>& block, const QueryRange& range) {
  T* begin = const_cast<T*>(block.data()) + range.first * block.outerStride();
  return {begin, range.rows, block.cols(), Eigen::OuterStride<>(block.outerStride())};
}

/// Calls `each` with every range of the queries of `tokens` tokens.
template <class Each>
void for_ranges(Eigen::Index tokens, Each each) {
  for (Eigen::Index first = 0; first < tokens; first += kQueries) {
    each(QueryRange{first, std::min(kQueries, tokens - first)});
  }
}

/// Computes scores = exp(scale q k^T - sum) over no later token: the softmax, given each row's sum.
template <class T>
void probabilities_of(const QueryRange& range, T scale, const T* sums, Matrix<T>& scores) {
  for (Eigen::Index r = 0; r < range.rows; ++r) {
    for (Eigen::Index c = 0; c < range.seen(); ++c) {
      scores(r, c) = c <= range.first + r ? std::exp(scale * scores(r, c) - sums[r]) : T(0);
    }
  }
}

/// Puts the logarithm of each row's sum of exponentials over no later token into `sums`.
template <class T>
void sums_of(const QueryRange& range, T scale, const Matrix<T>& scores, T* sums) {
  for (Eigen::Index r = 0; r < range.rows; ++r) {
    T most = scores(r, 0), total = 0;
    for (Eigen::Index c = 1; c <= range.first + r; ++c) most = std::max(most, scores(r, c));
    for (Eigen::Index c = 0; c <= range.first + r; ++c) {
      total += std::exp(scale * (scores(r, c) - most));
    }
    sums[r] = scale * most + std::log(total);
  }
}

/// Turns the gradient of the softmax `p` into that of q k^T, as causal_softmax_backward does.
template <class T>
void scores_gradient(const QueryRange& range, T scale, const Matrix<T>& p, Matrix<T>& gradient) {
  for (Eigen::Index r = 0; r < range.rows; ++r) {
    T along = 0;
    for (Eigen::Index c = 0; c < range.seen(); ++c) along += gradient(r, c) * p(r, c);
    for (Eigen::Index c = 0; c < range.seen(); ++c) {
      gradient(r, c) = p(r, c) * (gradient(r, c) - along) * scale;
    }
  }
}

/// A block's rows of queries, keys and values, or the gradients of these.
template <class T>
struct FusedBlock {
  StridedView<T> query, key, value;
  FusedBlock(const AttentionShape& shape, std::int64_t block, T* qkv)
      : query(block_of(shape, block, qkv, kParts, kQuery)),
        key(block_of(shape, block, qkv, kParts, kKey)),
        value(block_of(shape, block, qkv, kParts, kValue)) {}
};

template <class T>
void fused_block_forward(const FusedBlock<T>& read, const StridedView<T>& made, T* statistics) {
  const T scale = attention_scale<T>({.size = static_cast<int>(made.cols())});
  Matrix<T> p;
  for_ranges(made.rows(), [&](const QueryRange& range) {
    p.resize(range.rows, range.seen());
    p.noalias() = rows_of(read.query, range) * read.key.topRows(range.seen()).transpose();
    sums_of(range, scale, p, statistics + range.first);
    probabilities_of(range, scale, statistics + range.first, p);
    rows_of(made, range).noalias() = p * read.value.topRows(range.seen());
  });
}

/// Turns one block's gradient of its output back; `made` may lie where `read` does.
template <class T>
void fused_block_backward(const FusedBlock<T>& read, const StridedView<T>& dy, const T* statistics,
                          FusedBlock<T>& made) {
  const Eigen::Index n = dy.rows(), size = dy.cols();
  const T scale = attention_scale<T>({.size = static_cast<int>(size)});
  Matrix<T> p, ds, dquery, dkey = Matrix<T>::Zero(n, size), dvalue = Matrix<T>::Zero(n, size);
  for_ranges(n, [&](const QueryRange& range) {
    const StridedView<T> query = rows_of(read.query, range), slope = rows_of(dy, range);
    p.resize(range.rows, range.seen());
    p.noalias() = query * read.key.topRows(range.seen()).transpose();
    probabilities_of(range, scale, statistics + range.first, p);
    dvalue.topRows(range.seen()).noalias() += p.transpose() * slope;
    ds.resize(range.rows, range.seen());
    ds.noalias() = slope * read.value.topRows(range.seen()).transpose();
    scores_gradient(range, scale, p, ds);
    dkey.topRows(range.seen()).noalias() += ds.transpose() * query;
    dquery.resize(range.rows, size);
    dquery.noalias() = ds * read.key.topRows(range.seen());
    rows_of(made.query, range) = dquery;  // where the queries were, if it is in place
  });
  made.key = dkey;
  made.value = dvalue;
}

}  // namespace

template <class T>
void fused_attention_forward(const AttentionShape& shape, ConstMatrixView<T> qkv, T* statistics,
                             MatrixView<T> y) {
  const std::int64_t n = shape.positions;
  for (std::int64_t block = 0; block < qkv.rows() / n * shape.heads; ++block) {
    fused_block_forward(FusedBlock<T>(shape, block, const_cast<T*>(qkv.data())),
                        block_of(shape, block, y.data()), statistics + block * n);
  }
}

template <class T>
void fused_attention_backward_input(const AttentionShape& shape, FusedAttentionBackward<T> t) {
  const std::int64_t n = shape.positions;
  for (std::int64_t block = 0; block < t.qkv.rows() / n * shape.heads; ++block) {
    const FusedBlock<T> read(shape, block, const_cast<T*>(t.qkv.data()));
    FusedBlock<T> made(shape, block, t.dqkv.data());
    fused_block_backward(read, block_of(shape, block, const_cast<T*>(t.dy.data())),
                         t.statistics + block * n, made);
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
  template void attention_backward_input<T>(const AttentionShape&, AttentionBackward<T>);      \
  template void fused_attention_forward<T>(const AttentionShape&, ConstMatrixView<T>, T*,      \
                                           MatrixView<T>);                                     \
  template void fused_attention_backward_input<T>(const AttentionShape&, FusedAttentionBackward<T>)
// NOLINTEND(bugprone-macro-parentheses)
INTERLOCK_KERNELS(float);
INTERLOCK_KERNELS(double);
#undef INTERLOCK_KERNELS

}  // namespace interlock
