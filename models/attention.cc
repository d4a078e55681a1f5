// Attention: sizes of a block, and the operators between its tokens.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "models/block.h"
#include "models/retention.h"

namespace interlock {
namespace {

/// `products` attention products of (tokens, attended, hidden) multiply-adds, touching `elements`;
/// the backward of each is two of the same size.
Operator attention_product(const Transformer& t, const BlockSizes& z, int products,
                           double elements) {
  const double share = t.causal_flops ? 0.5 : 1;
  const Work forward = {.op_class = OpClass::Attention,
                        .flops = Flops(products * share * 2 * z.queries * z.attended),
                        .bytes = Bytes(elements * z.element)};
  Work backward = {.op_class = OpClass::Attention,
                   .flops = forward.flops * 2,
                   .bytes = forward.bytes * 2,
                   .launches = 2};
  return {.forward = forward,
          .input_gradient = backward,
          .gradients = Bytes(elements * z.element),
          .attention_core = true};
}

/// The product of one head of one sample that `columns` columns and `inner` elements a sum are of.
ProductShape head_product(const Transformer& t, const BlockSizes& z, double columns, double inner) {
  const double rows = static_cast<double>(part_of(t).length) / z.sharding.context;
  return {rows, columns, inner, z.statistics / rows};
}

void set_shape(Operator& op, const ProductShape& shape) {
  op.forward.shape = op.input_gradient.shape = shape;
}

bool turns_heads(const Sharding& sharding) {
  return sharding.context > 1 && sharding.context_layout == ContextLayout::AllToAll;
}

/// One kernel that stores queries, keys, values and a sum in fp32 for each row of the scores. What
/// its backward computes again inside is no model flop and is not counted.
/// Source: FlashAttention, arXiv 2205.14135.
Operator fused_attention(const Transformer& t, const BlockSizes& z) {
  Operator op = attention_product(t, z, 2, 2 * z.queries + 2 * z.keys_read);
  op.input_gradient.launches = 1;
  set_shape(op, head_product(t, z, z.attended, z.queries / z.statistics));
  op.stash = Bytes((z.queries + 2 * z.keys) * z.element + z.statistics * 4);
  // Its backward reads its output, which the projection keeps, but not in this order of tokens.
  if (turns_heads(z.sharding)) op.stash += Bytes(z.queries * z.element);
  return op;
}

std::vector<Operator> materialised_attention(const Transformer& t, const BlockSizes& z) {
  const double elements = z.statistics * z.attended;
  Operator scores = attention_product(t, z, 1, z.queries + z.keys_read + elements);
  scores.stash = Bytes((z.queries + z.keys) * z.element);
  set_shape(scores, head_product(t, z, z.attended, z.queries / z.statistics));
  Operator softmax = elementwise({.forward = 2 * elements,
                                  .backward = 3 * elements,
                                  .gradients = 2 * elements,
                                  .variant = OpVariant::Softmax},
                                 z.element);
  softmax.inner_stash = Bytes(elements * z.element);
  softmax.attention_core = true;
  Operator values = attention_product(t, z, 1, elements + z.keys_read + z.queries);
  values.stash = Bytes(z.keys * z.element);
  set_shape(values, head_product(t, z, z.queries / z.statistics, z.attended));
  if (t.dropout == 0) return {scores, softmax, values};
  Operator drop = dropout(elements, z.element);
  drop.inner_stash = drop.stash + Bytes(elements * z.element);  // the mask and the dropped output
  drop.stash = Bytes(0);
  drop.attention_core = true;
  return {scores, softmax, drop, values};
}

std::vector<Operator> attention_core(const Transformer& t, const BlockSizes& z) {
  std::vector<Operator> core = materialised_attention(t, z);
  if (t.attention == Transformer::Attention::Fused) core = {fused_attention(t, z)};
  if (z.sharding.context == 1 || turns_heads(z.sharding)) return core;
  const Bytes block(2 * z.keys * z.element);  // keys and values
  Operator& first = core.front();
  first.forward_exchanges = {{.kind = CollectiveKind::Shift,
                              .axis = MeshAxis::Context,
                              .bytes = block,
                              .count = z.sharding.context - 1,
                              .overlapped = true}};
  first.input_exchanges = first.forward_exchanges;
  first.input_exchanges.front().bytes = block * 2;  // their gradients with them
  first.gradients += block * 4;                     // the visiting block and the next, likewise
  return core;
}

/// From parts of the sequence to parts of the heads, or back.
Exchange turn(double elements, const BlockSizes& z) {
  return {.kind = CollectiveKind::AllToAll,
          .axis = MeshAxis::Context,
          .bytes = Bytes(elements * z.element)};
}

Retention retention_of(const Transformer& t, const BlockSizes& z) {
  return {.tokens = z.tokens,
          .hidden_size = t.hidden_size,
          .heads = t.attention_heads,
          .chunk = t.chunk_size,
          .causal_flops = t.causal_flops,
          .rotary = t.positions == Transformer::Positions::Rotary,
          .bias = t.bias,
          .sharding = z.sharding};
}

}  // namespace

TokenSlice part_of(const Transformer& t) {
  return t.slice.value_or(TokenSlice{t.sequence_length, 0, t.sequence_length});
}

int held_key_heads(const Transformer& t, const Sharding& sharding) {
  return std::max(t.kv_heads, inner_parts(sharding).columns);
}

BlockSizes block_sizes(const Transformer& t, const BuildOptions& options) {
  const Sharding& sharding = options.sharding;
  const TokenSlice part = part_of(t);
  const double batch = options.micro_batch_size;
  const double tokens = batch * part.length / sharding.context;
  const double head_size = static_cast<double>(t.hidden_size) / t.attention_heads;
  const double inner = inner_parts(sharding).share();
  const double key_width = head_size * held_key_heads(t, sharding) * inner;
  // A ring brings the keys of all tokens past, an all-to-all all tokens of a part of the heads.
  const double seen = batch * (part.context + part.length);
  return {.sharding = sharding,
          .element = element_bytes(options.precision),
          .tokens = tokens,
          .attended = 2.0 * part.context + part.length,
          .residual = tokens * t.hidden_size * outer_parts(sharding).share(),
          .queries = tokens * t.hidden_size * inner,
          .keys = tokens * key_width,
          .keys_read = seen * key_width / (turns_heads(sharding) ? sharding.context : 1),
          .statistics = tokens * t.attention_heads * inner};
}

std::int64_t norm_parameters(const Transformer& t) {
  return static_cast<std::int64_t>(t.rms_norm ? 1 : 2) * t.hidden_size;
}

void append_attention(const Transformer& t, const BlockSizes& z, std::vector<Operator>& block) {
  if (t.attention == Transformer::Attention::Retention) {
    for (const Operator& op : retention(retention_of(t, z), z.element)) block.push_back(op);
    return;
  }
  const std::int64_t head_size = t.hidden_size / t.attention_heads;
  const std::int64_t keys = head_size * held_key_heads(t, z.sharding);
  Operator inputs = sharded_linear({z.tokens, t.hidden_size, t.hidden_size + 2 * keys, t.bias},
                                   LinearRole::Column, z.sharding, z.element);
  Operator output = sharded_linear({z.tokens, t.hidden_size, t.hidden_size, t.bias},
                                   LinearRole::Row, z.sharding, z.element);
  if (turns_heads(z.sharding)) {
    const std::vector<Exchange> all = {turn(z.queries, z), turn(z.keys, z), turn(z.keys, z)};
    append_exchanges(inputs.forward_exchanges, all);
    append_exchanges(inputs.input_exchanges, all);
    append_exchanges(output.forward_exchanges, {turn(z.queries, z)});
    append_exchanges(output.input_exchanges, {turn(z.queries, z)});
  }
  block.push_back(inputs);
  if (t.positions == Transformer::Positions::Rotary) {
    const double turned = z.queries + z.keys;
    block.push_back(elementwise(
        {.forward = 2 * turned, .backward = 2 * turned, .gradients = 2 * turned}, z.element));
  }
  for (const Operator& op : attention_core(t, z)) block.push_back(op);
  block.push_back(output);
}

Bytes kept_for_later(const Transformer& t, const BlockSizes& z, const BuildOptions& options) {
  const TokenSlice part = part_of(t);
  if (part.context + part.length >= part.of) return Bytes(0);
  if (t.attention != Transformer::Attention::Retention) return Bytes(2 * z.keys * z.element);
  return retention_state(retention_of(t, z)) *
         (static_cast<double>(options.micro_batch_size) / inner_parts(z.sharding).rows);
}

}  // namespace interlock
