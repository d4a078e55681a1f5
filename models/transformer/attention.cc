// Attention: its sizes, and the operators between the tokens of a block.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "models/transformer/mixers.h"

namespace interlock {
namespace {

/// Sizes of one micro-batch; elements are those of one device.
struct BlockSizes {
  Sharding sharding;
  double element = 1;      // bytes
  double tokens = 1;       // of one part of the sequence, of all tensor devices together
  double attended = 1;     // columns of the scores, a token: s, or 2 c + l of a slice
  double stored = 1;       // what kernels that store the scores compute: s, or c + l of a slice
  double computed = 1;     // what a fused kernel computes, see computed_pairs
  double queries = 1;      // elements of (tokens, attention_heads, head_size)
  double attentions = 1;   // elements of (tokens, attention_heads, value_head_size), what comes out
  double keys = 1;         // elements of (tokens, kv_heads, head_size)
  double values = 1;       // elements of (tokens, kv_heads, value_head_size)
  double keys_read = 1;    // those of other devices and of the tokens before a slice included
  double values_read = 1;  // likewise
  double statistics = 1;   // elements of (tokens, attention_heads)
};

/// Queries, keys and values that are made of latents can be made again.
LayerParts made_of_latents(const BlockForm& t) {
  return t.latents.kv_rank > 0 ? LayerPart::LatentProjections : LayerParts();
}

/// Attention products of `outputs` (tokens, heads, head size) with all that is attended, touching
/// `elements`; the backward of each is two of the same size. Executed is what is stored, counted is
/// what is attended or half of it.
Operator attention_product(const BlockForm& t, const BlockSizes& z, double outputs,
                           double elements) {
  const double share = t.stream.causal_flops ? 0.5 : 1;
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

/// Returns the product of one head of one sample that `columns` columns and `inner` elements a sum
/// are of.
ProductShape head_product(const BlockForm& t, const BlockSizes& z, double columns, double inner) {
  const double rows = static_cast<double>(part_of(t.stream).length) / z.sharding.context;
  return {rows, columns, inner, z.statistics / rows};
}

void set_shape(Operator& op, const ProductShape& shape) {
  op.forward.shape = op.input_gradient.shape = shape;
}

bool turns_heads(const Sharding& sharding) { return sharding.turning_devices() > 1; }

/// Returns the group of exchanges of attention: all context devices, or of a hybrid those that turn
/// heads, or those of a ring.
MeshAxis context_axis(const Sharding& sharding, MeshAxis of_hybrid) {
  return sharding.context_layout == ContextLayout::Hybrid ? of_hybrid : MeshAxis::Context;
}

/// Adds the numbers of relative positions to the scores that `op` begins with: of each head and
/// pair of places, once for all samples, and their gradients.
void add_distances(const BlockForm& t, const BlockSizes& z, Operator& op) {
  const double places = static_cast<double>(part_of(t.stream).length) / z.sharding.context;
  const double scores = z.statistics * z.stored;
  const double samples = z.tokens / places;
  const bool stored = t.mixer == Mixer::Materialised;
  op.forward.bytes += Bytes((scores / samples + (stored ? 2 * scores : 0)) * z.element);
  op.input_gradient.bytes += Bytes((scores / samples + (stored ? scores : 0)) * z.element);
  if (!stored) return;
  ++op.forward.launches;
  ++op.input_gradient.launches;
}

/// Returns the kernels that a ring takes for a row: one for each block of keys, but for those that
/// a window leaves out.
double ring_calls(const BlockForm& t, const BlockSizes& z) {
  const double calls = z.sharding.ring_devices();
  if (!t.window) return calls;
  const double block = part_of(t.stream).length / calls;
  return std::min(calls, 1 + std::ceil(*t.window / block));
}

/// One kernel that stores queries, keys, values and a sum in fp32 (fp64 in fp64) for each row of
/// the scores. It executes the blocks of the scores that a mask leaves something of: forward,
/// scores and their product with the values; backward, the scores again, and gradients of values,
/// scores, queries and keys. The scores that are computed again are no model flop and are not
/// counted. Source: FlashAttention-2, arXiv 2307.08691, sections 3.1 and 4.1.
Operator fused_attention(const BlockForm& t, const BlockSizes& z) {
  const double made = z.queries + z.attentions;
  Operator op = attention_product(t, z, made, made + z.keys_read + z.values_read);
  op.forward.flops = Flops(2 * made * z.computed);
  op.input_gradient.flops = Flops(2 * (3 * z.queries + 2 * z.attentions) * z.computed);
  op.input_gradient.launches = 1;
  op.forward.variant = op.input_gradient.variant = OpVariant::Fused;
  const double head = z.queries / z.statistics;
  const double rows = static_cast<double>(part_of(t.stream).length) / z.sharding.ring_devices();
  set_shape(op, {rows, z.computed / ring_calls(t, z), head, z.statistics / rows});
  op.stash = Bytes((z.queries + z.keys + z.values) * z.element);
  op.inner_stash = Bytes(z.statistics * std::max(4.0, z.element));
  op.outputs = {Bytes(z.attentions * z.element)};
  if (t.relative) add_distances(t, z, op);
  // Its backward reads its output, which the projection keeps, but not in this order of tokens.
  (turns_heads(z.sharding) ? op.inner_stash : op.output_read) += Bytes(z.attentions * z.element);
  return op;
}

/// Scores, softmax and values go back one head after the other or all at once: the gradient of
/// what they make stays until those of queries, keys and values are there, and that of the values
/// comes first.
std::vector<Operator> materialised_attention(const BlockForm& t, const BlockSizes& z) {
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
  softmax.softmaxes = head_product(t, z, z.stored, z.stored).batch;
  softmax.parts = LayerPart::CoreAttention;
  Operator values = attention_product(t, z, z.attentions, elements + z.values_read + z.attentions);
  values.stash = Bytes(z.values * z.element);
  set_shape(values, head_product(t, z, z.attentions / z.statistics, z.stored));
  scores.waiting = softmax.waiting = Bytes((z.values + z.attentions) * z.element);
  if (t.relative) add_distances(t, z, softmax);
  if (t.stream.dropout == 0) return {scores, softmax, values};
  Operator drop = dropout(elements, z.element);
  drop.inner_stash = drop.stash + Bytes(elements * z.element);  // the mask and the dropped output
  drop.stash = Bytes(0);
  drop.parts = LayerPart::CoreAttention;
  drop.waiting = scores.waiting;
  return {scores, softmax, drop, values};
}

std::vector<Operator> attention_core(const BlockForm& t, const BlockSizes& z) {
  std::vector<Operator> core = materialised_attention(t, z);
  if (t.mixer == Mixer::Fused) core = {fused_attention(t, z)};
  if (z.sharding.ring_devices() == 1) return core;
  const Bytes block((z.keys + z.values) * z.element);
  Operator& first = core.front();
  first.forward_exchanges = {{.kind = CollectiveKind::Shift,
                              .axis = context_axis(z.sharding, MeshAxis::ContextRows),
                              .bytes = block,
                              .count = z.sharding.ring_devices() - 1,
                              .overlapped = true}};
  first.input_exchanges = first.forward_exchanges;
  first.input_exchanges.front().bytes = block * 2;  // their gradients with them
  first.gradients += block * 4;                     // the visiting block and the next, likewise
  return core;
}

/// From parts of the sequence to parts of the heads, or back.
Exchange turn(double elements, const BlockSizes& z) {
  return {.kind = CollectiveKind::AllToAll,
          .axis = context_axis(z.sharding, MeshAxis::ContextColumns),
          .bytes = Bytes(elements * z.element)};
}

/// Pairs of tokens that the first `tokens` of a sequence have scores for, see block.h.
double score_pairs(const BlockForm& t, double tokens) {
  if (t.mixer != Mixer::Fused) return tokens * tokens;
  if (t.attention_chunk) {
    const double chunk = *t.attention_chunk, whole = std::floor(tokens / chunk);
    const double left = tokens - whole * chunk;
    return whole * chunk * chunk + left * left;
  }
  if (!t.window || tokens <= *t.window) return tokens * tokens;
  const double window = *t.window;
  return window * window + (tokens - window) * (2 * window - 1);
}

/// Counts the pairs of tokens as computed_pairs does, where attention may see chunks alone.
double computed_pairs_of(const BlockForm& t, int tokens, int of) {
  if (!t.attention_chunk) return computed_pairs(tokens, of, t.window);
  const int chunk = *t.attention_chunk, whole = tokens / chunk;
  const int left = tokens - whole * chunk, last = std::min(chunk, of - whole * chunk);
  return whole * computed_pairs(chunk, chunk, {}) + computed_pairs(left, last, {});
}

/// Returns the mean over the tokens of a sequence of `pairs` of each document's length.
template <class Pairs>
double columns_of_documents(const ResidualStream& stream, const Pairs& pairs) {
  double sum = 0;
  for (const Document& one : stream.documents) sum += one.count * pairs(one.tokens);
  return sum / stream.sequence_length;
}

bool sees_documents(const BlockForm& t) {
  return t.mixer == Mixer::Fused && !t.stream.documents.empty();
}

double attended_columns(const BlockForm& t, const TokenSlice& part) {
  if (sees_documents(t)) {
    return columns_of_documents(t.stream, [&](int tokens) { return score_pairs(t, tokens); });
  }
  const double end = part.context + part.length;
  return (score_pairs(t, end) - score_pairs(t, part.context)) / part.length;
}

double computed_columns(const BlockForm& t, const TokenSlice& part) {
  if (t.stream.bidirectional) return attended_columns(t, part);
  if (sees_documents(t)) {
    return columns_of_documents(t.stream,
                                [&](int tokens) { return computed_pairs_of(t, tokens, tokens); });
  }
  const int end = part.context + part.length;
  const double pairs =
      computed_pairs_of(t, end, part.of) - computed_pairs_of(t, part.context, part.of);
  return pairs / part.length;
}

/// Muon makes queries, their gates, keys and values orthogonal apart (Megatron-LM's
/// muon_split_qkv).
void split_heads(const BlockForm& t, Operator& product) {
  const WeightMatrix whole = product.matrices.front();
  WeightMatrix query = whole, key = whole;
  query.columns = static_cast<double>(t.head_size) * t.attention_heads;
  query.count = t.gate ? 2 : 1;
  const double queries = query.columns * query.count;
  key.columns = (whole.columns - queries) / 2;
  query.parameters = std::llround(static_cast<double>(whole.parameters) * queries / whole.columns);
  key.parameters = whole.parameters - query.parameters;
  key.count = 2;
  product.matrices = {query, key};
}

/// RMS norms of queries and keys. Norms over all heads add up squares over tensor devices.
Operator query_norms(const BlockForm& t, const BlockSizes& z) {
  const bool whole = t.qk_norm == QkNorm::Whole;
  const std::int64_t size = t.head_size;
  const int columns = inner_parts(z.sharding).columns;
  const std::int64_t width =
      whole ? size * (t.attention_heads + held_key_heads(t, z.sharding)) / columns : 2 * size;
  Operator norm = normalisation(z.queries + z.keys, width, z.element);
  norm.waiting = Bytes(z.values * z.element);
  for (Work* work : {&norm.forward, &norm.input_gradient, &norm.weight_gradient}) {
    work->launches = 2;
  }
  if (!whole || columns == 1) return norm;
  norm.forward_exchanges = {{.kind = CollectiveKind::AllReduce,
                             .axis = MeshAxis::Tensor,
                             .bytes = Bytes(2 * z.tokens * 4)}};  // two fp32 sums a token
  norm.input_exchanges = norm.forward_exchanges;
  return norm;
}

/// Query, key and value projections, up to what attention reads; a gate is one more of queries.
void append_projections(const BlockForm& t, const StreamSizes& stream, const BlockSizes& z,
                        std::vector<Operator>& block) {
  if (t.latents.kv_rank > 0) return append_latents(t, stream, block);
  const std::int64_t size = t.head_size;
  const std::int64_t outputs =
      size * t.attention_heads * (t.gate ? 2 : 1) + 2 * size * held_key_heads(t, z.sharding);
  block.push_back(sharded_linear({z.tokens, t.stream.hidden_size, outputs, t.bias.qkv},
                                 LinearRole::Column, z.sharding, z.element));
  block.back().linear = LinearName::Qkv;
  block.back().fused = 3;
  block.back().outputs = {Bytes(z.queries * (t.gate ? 2 : 1) * z.element),
                          Bytes(z.keys * z.element), Bytes(z.values * z.element)};
  split_heads(t, block.back());
  if (t.qk_norm != QkNorm::None) block.push_back(query_norms(t, z));
}

/// Multiplies what attention puts out by the sigmoid of the gate, and keeps both.
/// Source: Qiu et al., Gated Attention for Large Language Models, arXiv 2505.06708, section 2.2.
Operator output_gate(const BlockSizes& z) {
  const double elements = z.attentions;
  return elementwise({.forward = 3 * elements,
                      .backward = 5 * elements,
                      .stash = 2 * elements,
                      .gradients = 3 * elements},
                     z.element);
}

/// Returns the kernel that turns pairs of elements by their token's place.
Operator rotation(const BlockForm& t, const BlockSizes& z) {
  // Latents' keys are put together from two parts, so that all of them are written.
  const double share = t.latents.kv_rank > 0 ? 1 : t.rotary_share;
  const double turned = (z.queries + z.keys) * share;
  Operator op = elementwise(
      {.forward = 2 * turned, .backward = 2 * turned, .gradients = 2 * turned}, z.element);
  op.waiting = Bytes((z.queries + z.keys - turned + z.values) * z.element);
  op.parts = made_of_latents(t);
  return op;
}

/// Returns what turning queries and keys by products, sums and copies has beside the one kernel:
/// forward six kernels each read or write 12 times what is turned, backward nine do so 17 times.
/// Source: _apply_rotary_pos_emb_bshd and _rotate_half in megatron/core/models/common/embeddings/
/// rope_utils.py (NVIDIA/Megatron-LM d98e8a6), which run where there is a factor.
Operator rotation_steps(const BlockForm& t, const BlockSizes& z) {
  constexpr int kFused = 2;
  const double turned = (z.queries + z.keys) * t.rotary_share * z.element;
  return small_steps({.forward_bytes = (12 - kFused) * turned,
                      .backward_bytes = (17 - kFused) * turned,
                      .forward = 2 * 6 - 1,
                      .backward = 2 * 9 - 1});
}

BlockSizes block_sizes(const BlockForm& t, const StreamSizes& z) {
  const Sharding& sharding = z.sharding;
  const TokenSlice part = part_of(t.stream);
  const double tokens = z.tokens;
  const double inner = inner_parts(sharding).share();
  const double heads = tokens * t.attention_heads;
  const double key_width = static_cast<double>(t.head_size) * held_key_heads(t, sharding) * inner;
  const double value_width =
      static_cast<double>(t.value_head_size) * held_key_heads(t, sharding) * inner;
  // A ring brings the keys of all tokens past, an all-to-all all tokens of a part of the heads.
  const double seen = z.samples * (part.context + part.length) / sharding.turning_devices();
  return {.sharding = sharding,
          .element = z.element,
          .tokens = tokens,
          .attended = attended_columns(t, part),
          .stored = static_cast<double>(part.context + part.length),
          .computed = computed_columns(t, part),
          .queries = heads * t.head_size * inner,
          .attentions = heads * t.value_head_size * inner,
          .keys = tokens * key_width,
          .values = tokens * value_width,
          .keys_read = seen * key_width,
          .values_read = seen * value_width,
          .statistics = heads * inner};
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

int held_key_heads(const BlockForm& t, const Sharding& sharding) {
  return std::max(t.kv_heads, inner_parts(sharding).columns);
}

void append_attention(const BlockForm& t, const StreamSizes& stream, std::vector<Operator>& block) {
  if (t.latents.selection.tokens > 0) return append_chosen_attention(t, stream, block);
  if (t.compression.query_rank > 0) return append_compressed_attention(t, stream, block);
  const BlockSizes z = block_sizes(t, stream);
  const std::size_t first = block.size();
  append_projections(t, stream, z, block);
  Operator output =
      sharded_linear({z.tokens, static_cast<std::int64_t>(t.value_head_size) * t.attention_heads,
                      t.stream.hidden_size, t.bias.projection},
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
  if (t.rotary) block.push_back(rotation(t, z));
  if (t.scaled_rotation) block.push_back(rotation_steps(t, z));
  const std::size_t core = block.size();
  for (const Operator& op : attention_core(t, z)) block.push_back(op);
  if (t.sinks) block[core].parameters += t.attention_heads / inner_parts(z.sharding).columns;
  if (t.gate) {
    const Bytes gate(z.attentions * z.element);  // its gradient, until the projection's backward
    block.push_back(output_gate(z));
    wait_beside(block, first + 1, block.size() - 1, gate);
  }
  block.push_back(output);
}

Bytes source_boundary(const BlockForm& t, const StreamSizes& z) {
  const double elements = z.samples * t.source_tokens * t.stream.hidden_size;
  return Bytes(elements * outer_parts(z.sharding).share() * z.element);
}

void append_cross_attention(const BlockForm& t, const StreamSizes& stream,
                            std::vector<Operator>& block) {
  BlockForm cross = t;  // no mask, and nothing turned: every token sees the whole source
  cross.stream.causal_flops = cross.relative = false;
  BlockSizes z = block_sizes(cross, stream);
  const double rows = stream.samples * t.source_tokens;
  z.attended = z.stored = z.computed = t.source_tokens;
  z.keys_read = z.keys *= rows / z.tokens;
  z.values_read = z.values *= rows / z.tokens;
  const std::int64_t width = static_cast<std::int64_t>(t.head_size) * t.attention_heads;
  const std::int64_t keys =
      2 * static_cast<std::int64_t>(t.head_size) * held_key_heads(t, z.sharding);
  const std::int64_t hidden = t.stream.hidden_size;
  const auto product = [&](const Linear& shape, LinearRole role) {
    return sharded_linear(shape, role, z.sharding, z.element);
  };
  block.push_back(product({z.tokens, hidden, width, t.bias.qkv}, LinearRole::Column));
  Operator made = product({rows, hidden, keys, t.bias.qkv}, LinearRole::Column);
  share_input(made);  // one block of the stage keeps it for all
  made.input_gradient.bytes +=
      source_boundary(t, stream) * 2;  // the sum with those of later blocks
  ++made.input_gradient.launches;
  made.reads_module_input = true;
  block.push_back(made);
  for (const Operator& op : attention_core(cross, z)) block.push_back(op);
  block.push_back(product({z.tokens, width, hidden, t.bias.projection}, LinearRole::Row));
}

Bytes attention_input(const BlockForm& t, const StreamSizes& stream) {
  const BlockSizes z = block_sizes(t, stream);
  return Bytes((z.queries + z.keys + z.values) * z.element);
}

Bytes attention_output(const BlockForm& t, const StreamSizes& stream) {
  const BlockSizes z = block_sizes(t, stream);
  return Bytes(z.attentions * z.element);
}

Bytes kept_keys(const BlockForm& t, const StreamSizes& stream) {
  const BlockSizes z = block_sizes(t, stream);
  return Bytes((z.keys + z.values) * z.element);
}

SliceContext slice_context(const BlockForm& t, const StreamSizes& stream) {
  const bool sees_all = !t.window && !t.attention_chunk && !t.stream.bidirectional;
  if (!t.stream.slice || !attends(t.mixer) || !sees_all || sees_documents(t)) return {};
  constexpr double kStatistic = 4;  // bytes, in fp32
  const BlockSizes z = block_sizes(t, stream);
  return {.layers = 1,
          .keys = Bytes((z.keys + z.values) * z.element),
          .queries = Bytes(z.queries * z.element),
          .outputs = Bytes(z.attentions * z.element),
          .statistics = Bytes(z.statistics * kStatistic)};
}

}  // namespace interlock
