// Gated delta: work, weights and saved bytes of its operators.
// SPDX-License-Identifier: Apache-2.0
//
// Every value head has a state of (key_head_size, value_head_size) numbers that decays; a token
// takes out what the state has under its key and puts in its value. A chunk of c tokens is products
// of matrices: K K^T, the inverse of one plus its lower triangle, that inverse times keys and
// values, what the state before the chunk adds, and Q K^T times the corrected values.
// Source: Yang et al., Gated Delta Networks, arXiv 2412.06464, section 3.3; the chunk's form is
// that of arXiv 2406.06484, section 3.
//
// Heads are divided among tensor devices. A state is handed on from token to token, so that a
// sequence is not divided.
#include "models/transformer/mixers.h"

namespace interlock {
namespace {

/// Sizes on one device; elements of a token.
struct Widths {
  double heads = 1;     // of values
  double keys = 1;      // of all value heads: each has its own copy
  double values = 1;    // of all value heads
  double states = 1;    // of all heads, between two tokens
  double triangle = 1;  // a row of each head's (c, c) matrix
  CausalConvolution convolution;
};

Widths widths_of(const BlockForm& b, const StreamSizes& z) {
  const GatedDelta& d = b.gated_delta;
  const double heads = static_cast<double>(d.value_heads) / z.sharding.tensor;
  const std::int64_t keys = static_cast<std::int64_t>(d.key_heads) * d.key_head_size;
  const std::int64_t values = static_cast<std::int64_t>(d.value_heads) * d.value_head_size;
  return {.heads = heads,
          .keys = heads * d.key_head_size,
          .values = heads * d.value_head_size,
          .states = heads * d.key_head_size * d.value_head_size,
          .triangle = heads * d.chunk_size,
          .convolution = {.tokens = z.tokens,
                          .channels = (2 * keys + values) / z.sharding.tensor,
                          .width = d.conv_width,
                          .bias = false}};
}

/// Flops of a token in the products of a chunk: inside it, K K^T, keys and values corrected, Q K^T
/// and its product with values, each over `columns`; with the state, what it has under the keys,
/// what it gains, and what queries read.
double product_flops(const GatedDelta& d, const Widths& w, double columns) {
  return columns * (6 * w.keys + 4 * w.values) + 6 * w.states +
         w.heads * d.chunk_size * columns / 3;  // the inverse of a triangle of n rows: n^3 / 3
}

/// Kernels with their traffic: K K^T; the inverse; corrected keys and values; states and new
/// values; outputs. Backward makes corrected keys and values, states and Q K^T again, and has two
/// products for each of the forward; the inverse has two of (c, c) matrices. Keeps queries, keys
/// and values of all value heads, decays (fp32) and strengths, and the inverse.
/// Source: fla-org/flash-linear-attention, commit 0315a70, fla/ops/gated_delta_rule/chunk.py.
Operator delta_rule(const BlockForm& b, const StreamSizes& z) {
  const GatedDelta& d = b.gated_delta;
  const Widths w = widths_of(b, z);
  const double chunk = d.chunk_size;
  const double run = product_flops(d, w, chunk);
  const double counted = product_flops(d, w, b.stream.causal_flops ? chunk / 2 : chunk);
  const double again = chunk * (4 * w.keys + 2 * w.values) + 4 * w.states;
  const double inverse = 4 * chunk * w.triangle;
  const double states = w.states / chunk;  // of a token's share of its chunk
  Operator op;
  op.forward = {
      .op_class = OpClass::Attention,
      .flops = Flops(z.tokens * run),
      .bytes =
          Bytes(z.tokens * ((7 * w.keys + 6 * w.values + 2 * states + 2 * w.triangle) * z.element +
                            2 * w.triangle * 4)),
      .launches = 6,
      .variant = OpVariant::Fused,
      .counted = Flops(z.tokens * counted)};
  op.input_gradient = {
      .op_class = OpClass::Attention,
      .flops = Flops(z.tokens * (2 * run + again + inverse)),
      .bytes =
          Bytes(z.tokens * (21 * w.keys + 15 * w.values + 4 * states + 2 * w.triangle) * z.element),
      .launches = 9,
      .variant = OpVariant::Fused,
      .counted = *op.forward.counted * 2};
  op.parameters =
      std::int64_t{2} * (d.value_heads / z.sharding.tensor);  // decay and step size of each head
  op.stash =
      Bytes(z.tokens * ((2 * w.keys + w.values + w.triangle + w.heads) * z.element + w.heads * 4));
  op.gradients = Bytes(z.tokens * (4 * w.keys + 4 * w.values + 2 * states) * z.element);
  return op;
}

}  // namespace

void append_gated_delta(const BlockForm& b, const StreamSizes& z, std::vector<Operator>& block) {
  const GatedDelta& d = b.gated_delta;
  const Widths w = widths_of(b, z);
  const std::int64_t keys = static_cast<std::int64_t>(d.key_heads) * d.key_head_size;
  const std::int64_t values = static_cast<std::int64_t>(d.value_heads) * d.value_head_size;
  // Queries, keys, values and gates; a decay and a strength for each head.
  const std::int64_t outputs = 2 * keys + 2 * values + std::int64_t{2} * d.value_heads;
  block.push_back(sharded_linear({z.tokens, b.stream.hidden_size, outputs, b.bias.qkv},
                                 LinearRole::Column, z.sharding, z.element));
  block.back().linear = LinearName::Qkv;
  const std::size_t first = block.size();
  block.push_back(causal_convolution(w.convolution, z.element));
  block.push_back(delta_rule(b, z));
  wait_beside(block, first, block.size(), Bytes(z.tokens * w.values * z.element));  // of the gate
  block.push_back(gated_norm(z.tokens * w.values, d.value_head_size, z.element));
  block.push_back(sharded_linear({z.tokens, values, b.stream.hidden_size, b.bias.projection},
                                 LinearRole::Row, z.sharding, z.element));
  block.back().linear = LinearName::Projection;
}

Bytes gated_delta_state(const BlockForm& b, const StreamSizes& z) {
  const Widths w = widths_of(b, z);
  return Bytes(w.states * 4) + convolution_tail(w.convolution, z.element);
}

}  // namespace interlock
