// Attention: sizes of a block, and the operators between its tokens.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "models/transformer/block.h"
#include "models/transformer/retention.h"

namespace interlock {
namespace {

/// Queries, keys and values that are made of latents can be made again.
LayerParts made_of_latents(const Transformer& t) {
  return t.latents.kv_rank > 0 ? LayerPart::LatentProjections : LayerParts();
}

/// Attention products of `outputs` (tokens, heads, head size) with all that is attended, touching
/// `elements`; the backward of each is two of the same size. Executed is what is stored, counted is
/// what is attended or half of it.
Operator attention_product(const Transformer& t, const BlockSizes& z, double outputs,
                           double elements) {
  const double share = t.causal_flops ? 0.5 : 1;
  const Work forward = {.op_class = OpClass::Attention,
                        .flops = Flops(2 * outputs * z.stored),
                        .bytes = Bytes(elements * z.element),
                        .counted = Flops(share * 2 * outputs * z.attended)};
  Work backward = {.op_class = OpClass::Attention,
                   .flops = forward.flops * 2,
                   .bytes = forward.bytes * 2,
                   .launches = 2,
                   .counted = *forward.counted * 2};
  return {.forward = forward,
          .input_gradient = backward,
          .gradients = Bytes(elements * z.element),
          .parts = LayerPart::CoreAttention,
          .remade = made_of_latents(t)};
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

/// One kernel that stores queries, keys, values and a sum in fp32 for each row of the scores. It
/// executes the blocks of the scores that a mask leaves something of: forward, scores and their
/// product with the values; backward, the scores again, and gradients of values, scores, queries
/// and keys. The scores that are computed again are no model flop and are not counted.
/// Source: FlashAttention-2, arXiv 2307.08691, sections 3.1 and 4.1.
Operator fused_attention(const Transformer& t, const BlockSizes& z) {
  const double made = z.queries + z.attentions;
  Operator op = attention_product(t, z, made, made + z.keys_read + z.values_read);
  op.forward.flops = Flops(2 * made * z.computed);
  op.input_gradient.flops = Flops(2 * (3 * z.queries + 2 * z.attentions) * z.computed);
  op.input_gradient.launches = 1;
  op.forward.variant = op.input_gradient.variant = OpVariant::Fused;
  set_shape(op, head_product(t, z, z.attended, z.queries / z.statistics));
  op.stash = Bytes((z.queries + z.keys + z.values) * z.element);
  op.inner_stash = Bytes(z.statistics * 4);
  // Its backward reads its output, which the projection keeps, but not in this order of tokens.
  if (turns_heads(z.sharding)) op.inner_stash += Bytes(z.attentions * z.element);
  return op;
}

/// Scores, softmax and values go back one head after the other or all at once: the gradient of
/// what they make stays until those of queries, keys and values are there, and that of the values
/// comes first.
std::vector<Operator> materialised_attention(const Transformer& t, const BlockSizes& z) {
  const double elements = z.statistics * z.stored;
  Operator scores = attention_product(t, z, z.queries, z.queries + z.keys_read + elements);
  scores.stash = Bytes((z.queries + z.keys) * z.element);
  set_shape(scores, head_product(t, z, z.stored, z.queries / z.statistics));
  Operator softmax = elementwise({.forward = 2 * elements,
                                  .backward = 3 * elements,
                                  .gradients = 2 * elements,
                                  .variant = OpVariant::Softmax},
                                 z.element);
  softmax.inner_stash = Bytes(elements * z.element);
  softmax.parts = LayerPart::CoreAttention;
  Operator values = attention_product(t, z, z.attentions, elements + z.values_read + z.attentions);
  values.stash = Bytes(z.values * z.element);
  set_shape(values, head_product(t, z, z.attentions / z.statistics, z.stored));
  scores.waiting = softmax.waiting = Bytes((z.values + z.attentions) * z.element);
  if (t.dropout == 0) return {scores, softmax, values};
  Operator drop = dropout(elements, z.element);
  drop.inner_stash = drop.stash + Bytes(elements * z.element);  // the mask and the dropped output
  drop.stash = Bytes(0);
  drop.parts = LayerPart::CoreAttention;
  drop.waiting = scores.waiting;
  return {scores, softmax, drop, values};
}

std::vector<Operator> attention_core(const Transformer& t, const BlockSizes& z) {
  std::vector<Operator> core = materialised_attention(t, z);
  if (t.attention == Transformer::Attention::Fused) core = {fused_attention(t, z)};
  if (z.sharding.context == 1 || turns_heads(z.sharding)) return core;
  const Bytes block((z.keys + z.values) * z.element);
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
          .parallel = t.chunk_size == t.sequence_length && !t.slice,
          .causal_flops = t.causal_flops,
          .rotary = t.positions == Transformer::Positions::Rotary,
          .bias = t.bias.qkv,
          .sharding = z.sharding};
}

/// Pairs of tokens that the first `tokens` of a sequence have scores for, see block.h.
double score_pairs(const Transformer& t, double tokens) {
  const bool cuts = t.window && t.attention == Transformer::Attention::Fused;
  if (!cuts || tokens <= *t.window) return tokens * tokens;
  const double window = *t.window;
  return window * window + (tokens - window) * (2 * window - 1);
}

double attended_columns(const Transformer& t, const TokenSlice& part) {
  const double end = part.context + part.length;
  return (score_pairs(t, end) - score_pairs(t, part.context)) / part.length;
}

double computed_columns(const Transformer& t, const TokenSlice& part) {
  if (t.bidirectional) return part.of;
  const int end = part.context + part.length;
  const double pairs =
      computed_pairs(end, part.of, t.window) - computed_pairs(part.context, part.of, t.window);
  return pairs / part.length;
}

/// Muon makes queries, keys and values orthogonal apart (Megatron-LM's muon_split_qkv).
void split_heads(const Transformer& t, Operator& product) {
  const WeightMatrix whole = product.matrices.front();
  const double queries = static_cast<double>(t.head_size) * t.attention_heads;
  WeightMatrix query = whole, key = whole;
  query.columns = queries;
  key.columns = (whole.columns - queries) / 2;
  query.parameters = std::llround(static_cast<double>(whole.parameters) * queries / whole.columns);
  key.parameters = whole.parameters - query.parameters;
  key.count = 2;
  product.matrices = {query, key};
}

/// Query, key and value projections, up to what attention reads.
void append_projections(const Transformer& t, const BlockSizes& z, std::vector<Operator>& block) {
  if (t.latents.kv_rank > 0) return append_latents(t, z, block);
  const std::int64_t size = t.head_size;
  const std::int64_t outputs = size * t.attention_heads + 2 * size * held_key_heads(t, z.sharding);
  block.push_back(sharded_linear({z.tokens, t.hidden_size, outputs, t.bias.qkv}, LinearRole::Column,
                                 z.sharding, z.element));
  block.back().linear = LinearName::Qkv;
  block.back().fused = 3;
  split_heads(t, block.back());
  const double normed = z.queries + z.keys;
  if (!t.qk_norm) return;
  Operator norm = normalisation(normed, 2 * size, z.element);
  norm.waiting = Bytes(z.values * z.element);
  for (Work* work : {&norm.forward, &norm.input_gradient, &norm.weight_gradient}) {
    work->launches = 2;
  }
  block.push_back(norm);
}

/// The kernel that turns pairs of elements by their token's place.
Operator rotation(const Transformer& t, const BlockSizes& z) {
  // Latents' keys are put together from two parts, so that all of them are written.
  const double share = t.latents.kv_rank > 0 ? 1 : t.rotary_share;
  const double turned = (z.queries + z.keys) * share;
  Operator op = elementwise(
      {.forward = 2 * turned, .backward = 2 * turned, .gradients = 2 * turned}, z.element);
  op.waiting = Bytes((z.queries + z.keys - turned + z.values) * z.element);
  op.parts = made_of_latents(t);
  return op;
}

}  // namespace

double computed_pairs(int tokens, int of, std::optional<int> window) {
  const double b = kAttentionBlock;
  const int whole = tokens / kAttentionBlock, left = tokens % kAttentionBlock;
  // Block row k ends with its own columns, b (k + 1), or with the sequence.
  const double last = std::min<double>(of, b * (whole + 1));
  double pairs = b * b * whole * (whole + 1.0) / 2 + left * last;
  if (!window) return pairs;
  // It begins `back` blocks before itself: those that the window of its first token reaches.
  const int back = (*window - 1 + kAttentionBlock - 1) / kAttentionBlock;
  const double skips = std::max(0, whole - 1 - back);  // of the last whole row: blocks, from 0
  return pairs - b * b * skips * (skips + 1) / 2 - left * b * std::max(0, whole - back);
}

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
  const double inner = inner_parts(sharding).share();
  const double heads = tokens * t.attention_heads;
  const double key_width = static_cast<double>(t.head_size) * held_key_heads(t, sharding) * inner;
  const double value_width =
      static_cast<double>(t.value_head_size) * held_key_heads(t, sharding) * inner;
  // A ring brings the keys of all tokens past, an all-to-all all tokens of a part of the heads.
  const double seen =
      batch * (part.context + part.length) / (turns_heads(sharding) ? sharding.context : 1);
  return {.sharding = sharding,
          .element = element_bytes(options.precision),
          .tokens = tokens,
          .attended = attended_columns(t, part),
          .stored = static_cast<double>(part.context + part.length),
          .computed = computed_columns(t, part),
          .residual = tokens * t.hidden_size * outer_parts(sharding).share(),
          .queries = heads * t.head_size * inner,
          .attentions = heads * t.value_head_size * inner,
          .keys = tokens * key_width,
          .values = tokens * value_width,
          .keys_read = seen * key_width,
          .values_read = seen * value_width,
          .statistics = heads * inner};
}

std::int64_t norm_parameters(const Transformer& t) {
  return static_cast<std::int64_t>(t.rms_norm ? 1 : 2) * t.hidden_size;
}

Operator norm_of(const Transformer& t, const BlockSizes& z) {
  return sharded_norm({z.tokens, t.hidden_size, norm_parameters(t)}, z.sharding, z.element);
}

Bytes boundary(const BlockSizes& z) { return Bytes(z.residual * z.element); }

void append_attention(const Transformer& t, const BlockSizes& z, std::vector<Operator>& block) {
  if (t.attention == Transformer::Attention::Retention) {
    for (const Operator& op : retention(retention_of(t, z), z.element)) block.push_back(op);
    return;
  }
  const std::size_t first = block.size();
  append_projections(t, z, block);
  Operator output =
      sharded_linear({z.tokens, static_cast<std::int64_t>(t.value_head_size) * t.attention_heads,
                      t.hidden_size, t.bias.projection},
                     LinearRole::Row, z.sharding, z.element);
  output.linear = LinearName::Projection;
  if (turns_heads(z.sharding)) {
    const std::vector<Exchange> all = {turn(z.queries, z), turn(z.keys, z), turn(z.values, z)};
    Operator& inputs = block[first];
    append_exchanges(inputs.forward_exchanges, all);
    append_exchanges(inputs.input_exchanges, all);
    append_exchanges(output.forward_exchanges, {turn(z.attentions, z)});
    append_exchanges(output.input_exchanges, {turn(z.attentions, z)});
  }
  if (t.positions == Transformer::Positions::Rotary) block.push_back(rotation(t, z));
  for (const Operator& op : attention_core(t, z)) block.push_back(op);
  block.push_back(output);
}

Bytes kept_for_later(const Transformer& t, const BlockSizes& z, const BuildOptions& options) {
  const TokenSlice part = part_of(t);
  if (part.context + part.length >= part.of) return Bytes(0);
  if (t.attention != Transformer::Attention::Retention) {
    return Bytes((z.keys + z.values) * z.element);
  }
  return retention_state(retention_of(t, z)) *
         (static_cast<double>(options.micro_batch_size) / inner_parts(z.sharding).rows);
}

}  // namespace interlock
