// Kernels of causal attention on the CPU; instantiated for float and double.
// SPDX-License-Identifier: Apache-2.0
//
// Names as in dense_kernels.h. Queries, keys and values of a token lie side by side in a row; in
// each, one head after the other. A block is a head of a sample; blocks go head by head through
// each sample. The kernels of one block are what cost models know as scores, softmax and values.
//
// Example: eight samples of {positions 4, heads 2, size 16}: qkv is (32, 96), probabilities are
// (64, 4). Block 3 is head 1 of sample 1: its keys are rows 4 to 7, columns 48 to 63 of qkv.
#pragma once

#include "validate/cpu/layers/matrix_view.h"

namespace interlock {

struct AttentionShape {
  int positions = 1;  // tokens of a sample
  int heads = 1;
  int size = 1;  // of a head
};

/// The parts that lie side by side in a row of queries, keys and values.
inline constexpr int kQuery = 0, kKey = 1, kValue = 2, kParts = 3;

/// Computes y = softmax(q k^T / sqrt(size)) v of each block over no later token. Keeps the softmax,
/// (blocks * positions, positions).
template <class T>
void attention_forward(const AttentionShape& shape, ConstMatrixView<T> qkv,
                       MatrixView<T> probabilities, MatrixView<T> y);
/// `dqkv` may be `qkv`. `scratch`: positions^2 numbers, then positions * size more.
template <class T>
struct AttentionBackward {
  ConstMatrixView<T> qkv, probabilities, dy;
  MatrixView<T> dqkv;
  T* scratch;
};
template <class T>
void attention_backward_input(const AttentionShape& shape, AttentionBackward<T> tensors);

/// Computes the same in one kernel, some queries at a time; keeps nothing but, of each block's
/// rows, the logarithm of the sum of exponentials, `statistics` (blocks * positions).
template <class T>
void fused_attention_forward(const AttentionShape& shape, ConstMatrixView<T> qkv, T* statistics,
                             MatrixView<T> y);
/// `dqkv` may be `qkv`.
template <class T>
struct FusedAttentionBackward {
  ConstMatrixView<T> qkv, dy;
  const T* statistics;
  MatrixView<T> dqkv;
};
template <class T>
void fused_attention_backward_input(const AttentionShape& shape, FusedAttentionBackward<T> tensors);

/// Returns the columns of a block in `tensor`, whose rows have `parts` times the width of all
/// heads: of (query, key, value) number `part`.
template <class T>
StridedView<T> block_of(const AttentionShape& shape, std::int64_t block, T* tensor, int parts = 1,
                        int part = 0);

/// Computes scores = q k^T
template <class T>
void block_scores(const StridedView<T>& query, const StridedView<T>& key, MatrixView<T> scores);
/// Computes in each row the softmax of the tokens that are not later, times `scale`, and zeros.
template <class T>
void causal_softmax(T scale, MatrixView<T> scores);
/// Computes y = p v
template <class T>
void block_values(ConstMatrixView<T> probabilities, const StridedView<T>& value, StridedView<T> y);

/// dp = dy v^T, then dv = p^T dy, which may take the place of v.
template <class T>
struct ValuesBackward {
  ConstMatrixView<T> probabilities;
  StridedView<T> value, dy;
  MatrixView<T> dprobabilities;
  StridedView<T> dvalue;
};
template <class T>
void block_values_backward(ValuesBackward<T> tensors);
/// Turns the gradient of the softmax into that of q k^T.
template <class T>
void causal_softmax_backward(ConstMatrixView<T> probabilities, T scale, MatrixView<T> gradient);
/// dq = ds k and dk = ds^T q. Where they take the places of q and k, `scratch` has the shape of q;
/// else it may be empty.
template <class T>
struct ScoresBackward {
  ConstMatrixView<T> dscores;
  StridedView<T> query, key, dquery, dkey;
  MatrixView<T> scratch;
};
template <class T>
void block_scores_backward(ScoresBackward<T> tensors);

}  // namespace interlock
