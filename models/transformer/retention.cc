// Retention: work, weights and saved bytes of its operators.
// SPDX-License-Identifier: Apache-2.0
//
// In the parallel form each token attends to all before it, as in attention without a softmax. In
// the chunkwise form each token attends to its own chunk, and to all before it through a state
// of (key width, value width) a head that is handed on. Work and bytes of a token do not depend on
// where in the sequence it stands. Values are twice as wide as queries and keys and gated, which
// makes 8 h^2 weights.
// Source: Sun et al., Retentive Network, arXiv 2307.08621, sections 2.2, 2.3 and 3.1.
#include "models/transformer/mixers.h"

namespace interlock {
namespace {

/// Elements of a token that one device has.
double width_of(const Retention& r) {
  return static_cast<double>(r.hidden_size) / inner_parts(r.sharding).columns;
}

/// Returns one kernel: queries, keys and values in, the retained values out. For each token the
/// scores of its chunk (c h) and their product with the values (2 c h), and reading and updating
/// the state (2 h^2 / a each); a state is read and written once a chunk, and kept for the backward.
/// One chunk for all tokens (the parallel form) has no state. Inside a chunk blocks of scores
/// beyond the diagonal are skipped, as in fused attention; backward, scores are computed again, and
/// gradients of values, scores, queries and keys made: 7 c h for 3 c h.
Operator retain(const Retention& r, double element) {
  const double h = width_of(r);
  const double tokens = r.tokens / inner_parts(r.sharding).rows;
  const double counted = (r.causal_flops ? 0.5 : 1) * 3 * r.chunk * h;
  const double columns = computed_pairs(r.chunk, r.chunk, {}) / r.chunk;
  const double reading = 2 * h * static_cast<double>(r.hidden_size) / r.heads;
  const double across = r.parallel ? 0 : 2 * reading;
  const Bytes states = r.parallel ? Bytes(0) : retention_state(r) * (tokens / r.chunk);
  Operator op;
  op.forward = {.op_class = OpClass::Attention,
                .flops = Flops(2 * tokens * (3 * columns * h + across)),
                .bytes = Bytes(tokens * 6 * h * element) + states * 2,
                .variant = OpVariant::Fused,
                .counted = Flops(2 * tokens * (counted + across))};
  op.input_gradient = {.op_class = OpClass::Attention,
                       .flops = Flops(2 * tokens * (7 * columns * h + 2 * across)),
                       .bytes = op.forward.bytes * 2,
                       .variant = OpVariant::Fused,
                       .counted = *op.forward.counted * 2};
  op.stash = Bytes(tokens * 4 * h * element) + states;
  op.gradients = Bytes(tokens * 6 * h * element);
  return op;
}

}  // namespace

Bytes retention_state(const Retention& r) {
  return Bytes(2 * width_of(r) * static_cast<double>(r.hidden_size) / r.heads * 4);
}

std::vector<Operator> retention(const Retention& r, double element) {
  const double queries = r.tokens / inner_parts(r.sharding).rows * width_of(r);  // as many keys
  const double values = 2 * queries;
  std::vector<Operator> operators = {
      sharded_linear({r.tokens, r.hidden_size, 6 * r.hidden_size, r.bias}, LinearRole::Column,
                     r.sharding, element)};
  operators.back().linear = LinearName::Qkv;
  if (r.rotary) {
    const double turned = 2 * queries;
    operators.push_back(elementwise(
        {.forward = 2 * turned, .backward = 2 * turned, .gradients = 2 * turned}, element));
  }
  operators.push_back(retain(r, element));
  operators.push_back(normalisation(values, 0, element));  // each head by itself, no weights
  operators.push_back(elementwise(
      {.forward = 3 * values, .backward = 5 * values, .stash = 2 * values, .gradients = 3 * values},
      element));  // the gate and its activation
  operators.push_back(sharded_linear({r.tokens, 2 * r.hidden_size, r.hidden_size, r.bias},
                                     LinearRole::Row, r.sharding, element));
  operators.back().linear = LinearName::Projection;
  return operators;
}

}  // namespace interlock
