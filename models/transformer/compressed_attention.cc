// Compressed attention: a window of tokens, and entries that are each made of several.
// SPDX-License-Identifier: Apache-2.0
//
// Queries are made of a latent. One key of head_size numbers for each token is its value, too, and
// all heads share it. Behind the window a token sees entries: of every `ratio` tokens two products
// make values and weights, and a softmax over these tokens, number by number, makes one entry,
// which is normalised; with an overlap it is over those of the entry before, too, of which each
// token has further values and weights. A token sees the entries that end before it, or with it:
// all of them, or the best by an indexer, whose keys are narrower entries of the same tokens. What
// heads make is turned back by the place of their token, and projected in two steps: each group of
// heads to a rank, in 16 bits, and all of that to the stream.
//
// Every tensor device has the whole of the products that make keys and entries, and works on its
// own part of the sequence; it has the whole indexer (latent_attention.cc). Kernels that see a
// window and entries are priced as those of fused attention. Sources: DeepSeek-V4 in
// huggingface/transformers 0197608, src/transformers/models/deepseek_v4/modeling_deepseek_v4.py;
// megatron/core/transformer/ experimental_attention_variant/csa.py (NVIDIA/Megatron-LM f0fdb2d),
// with fused kernels.
#include <algorithm>
#include <cmath>

#include "models/transformer/mixers.h"

namespace interlock {
namespace {

/// Entries that tokens 1 to `tokens` of a sequence see together, if each sees all.
double entries_before(double tokens, double ratio) {
  const double whole = std::floor(tokens / ratio);
  return ratio * whole * (whole - 1) / 2 + whole * (tokens - ratio * whole + 1);
}

double entries_seen(double tokens, double ratio, double most) {
  const double full = most * ratio;  // the first token that sees as many as it may
  if (tokens < full) return entries_before(tokens, ratio);
  return entries_before(full - 1, ratio) + most * (tokens - full + 1);
}

double pairs_in_window(double tokens, double window) {
  const double within = std::min(tokens, window);
  return within * (within + 1) / 2 + (tokens - within) * within;
}

/// Sizes on one device.
struct Entries {
  double heads = 1;
  double made = 0;                // entries of all sequences
  double scored = 0, chosen = 0;  // pairs of all tokens with entries: that the indexer scores; seen
  double seen = 1;                // tokens and entries that a token sees, on average
  double queries = 1, keys = 1;   // elements, of tokens and entries together
};

Entries entries_of(const BlockForm& b, const StreamSizes& z) {
  const Compression& c = b.compression;
  const double sequence = b.stream.sequence_length;
  Entries e = {.heads = b.attention_heads * inner_parts(z.sharding).share()};
  if (c.ratio > 0) {
    const double all = std::floor(sequence / c.ratio);
    const double most = c.selection.tokens > 0 ? std::min<double>(c.selection.tokens, all) : all;
    e.made = z.samples * all;
    e.scored = z.samples * entries_before(sequence, c.ratio);
    e.chosen = z.samples * entries_seen(sequence, c.ratio, most);
  }
  const double window = z.samples * pairs_in_window(sequence, b.window.value_or(sequence));
  e.seen = (window + e.chosen) / z.tokens;
  e.queries = z.tokens * e.heads * b.head_size;
  e.keys = (z.tokens + e.made) * b.head_size;
  return e;
}

/// A compressor: from (rows, hidden_size) to entries of `width` numbers.
struct Compressor {
  double rows = 1;
  std::int64_t width = 1;
  bool learns_alone = false;  // no gradient of the tokens
};

void append_compressor(const BlockForm& b, const StreamSizes& z, const Compressor& made,
                       std::vector<Operator>& block) {
  const Compression& c = b.compression;
  const std::int64_t columns = made.width * (c.overlap ? 2 : 1);
  for (int product = 0; product < 2; ++product) {
    Operator op = linear({made.rows, b.stream.hidden_size, columns, false}, z.element);
    share_input(op);
    op.keeps_narrow = true;
    if (made.learns_alone) {
      end_gradients(op);
    } else {
      op.input_gradient.bytes += boundary(z);  // added to those before it
    }
    block.push_back(op);
  }
  const double read = 2 * made.rows * static_cast<double>(columns);
  const double entries = made.rows / c.ratio * static_cast<double>(made.width);
  Operator pooled = elementwise({.forward = read + entries,
                                 .backward = 2 * read + entries,
                                 .stash = read,
                                 .gradients = read + entries},
                                z.element);
  pooled.parameters = c.ratio * columns;  // a number for each place, added to the weights
  block.push_back(pooled);
  block.push_back(normalisation(entries, made.width, z.element));
}

/// Adds the indexer: queries of the latent, a weight for each head, and narrow entries.
void append_entry_indexer(const BlockForm& b, const StreamSizes& z, const Entries& e,
                          std::vector<Operator>& block) {
  const Selection& s = b.compression.selection;
  const std::size_t first = block.size();
  block.push_back(
      indexer_product(z, b.compression.query_rank, std::int64_t{s.heads} * s.head_size));
  block.push_back(indexer_product(z, b.stream.hidden_size, s.heads));
  append_compressor(b, z, {.rows = z.tokens, .width = s.head_size, .learns_alone = true}, block);
  append_choice(b, z, s,
                {.pairs = e.scored,
                 .seen = e.chosen,
                 .keys = e.made * s.head_size,
                 .attended = e.heads * b.head_size,
                 .read = e.queries + e.keys},
                first, block);
}

/// One kernel, as chosen_attention: keys are values.
Operator attention_to_entries(const BlockForm& b, const StreamSizes& z, const Entries& e) {
  Operator op;
  op.forward = {.op_class = OpClass::Attention,
                .flops = Flops(2 * e.seen * 2 * e.queries),
                .bytes = Bytes((2 * e.queries + e.keys) * z.element),
                .variant = OpVariant::Fused,
                .shape = {static_cast<double>(b.stream.sequence_length), e.seen,
                          static_cast<double>(b.head_size), z.samples * e.heads}};
  op.input_gradient = op.forward;
  op.input_gradient.flops = Flops(2 * e.seen * 5 * e.queries);
  op.input_gradient.bytes = op.forward.bytes * 2;
  op.input_gradient.counted = op.forward.flops * 2;
  op.parameters = b.sinks ? std::llround(e.heads) : 0;
  op.gradients = op.forward.bytes;
  op.stash = Bytes((e.queries + e.keys) * z.element);
  op.inner_stash = Bytes(z.tokens * e.heads * 4);
  op.outputs = {Bytes(e.queries * z.element)};  // which the next product keeps, too
  op.parts = LayerPart::CoreAttention;
  op.remade = LayerPart::LatentProjections;
  return op;
}

/// Returns what turns `elements` by their places, in place.
Operator turned(double elements, double element) {
  return elementwise({.forward = 2 * elements, .backward = 2 * elements, .gradients = 2 * elements},
                     element);
}

/// Queries with a norm of each head, which has no weights.
void append_normed_queries(const BlockForm& b, const StreamSizes& z, const Entries& e,
                           std::vector<Operator>& block) {
  BlockForm latent = b;
  latent.latents.query_rank = b.compression.query_rank;
  append_queries(latent, z, block);
  Operator norm = normalisation(e.queries, 0, z.element);
  norm.weight_gradient = {.launches = 0};
  norm.parts = norm.remade = LayerPart::LatentProjections;
  block.push_back(norm);
}

/// Keys of tokens, made by every tensor device of its own part, and entries likewise. Those of all
/// tokens go to all devices, which have some heads each.
void append_keys(const BlockForm& b, const StreamSizes& z, const Entries& e,
                 std::vector<Operator>& block) {
  const double rows = z.tokens / outer_parts(z.sharding).rows;
  Operator keys = linear({rows, b.stream.hidden_size, b.head_size, b.bias.qkv}, z.element);
  keys.linear = LinearName::Qkv;
  share_input(keys);
  keys.input_gradient.bytes += boundary(z);
  block.push_back(keys);
  block.push_back(sharded_norm({z.tokens, b.head_size, b.head_size}, z.sharding, z.element));
  if (b.compression.ratio > 0) {
    append_compressor(b, z, {.rows = rows, .width = b.head_size}, block);
  }
  const Operator sent = sharded_linear({z.tokens + e.made, b.head_size, z.sharding.tensor, false},
                                       LinearRole::Column, z.sharding, z.element);
  append_exchanges(block.back().forward_exchanges, sent.forward_exchanges);
  append_exchanges(block.back().input_exchanges, sent.input_exchanges);
}

void append_projections_of_groups(const BlockForm& b, const StreamSizes& z,
                                  std::vector<Operator>& block) {
  const Compression& c = b.compression;
  const std::int64_t width =
      static_cast<std::int64_t>(b.head_size) * b.attention_heads / c.output_groups;
  const double groups = c.output_groups * inner_parts(z.sharding).share();
  Operator first = product_of_each(groups, {z.tokens, width, c.output_rank, false}, z.element);
  first.matrices = {{.rows = static_cast<double>(width),
                     .columns = static_cast<double>(c.output_rank),
                     .count = std::max(1, static_cast<int>(groups)),
                     .parameters = first.parameters}};
  block.push_back(first);
  block.push_back(sharded_linear({z.tokens, std::int64_t{c.output_groups} * c.output_rank,
                                  b.stream.hidden_size, b.bias.projection},
                                 LinearRole::Row, z.sharding, z.element));
  block.back().linear = LinearName::Projection;
}

}  // namespace

void append_compressed_attention(const BlockForm& b, const StreamSizes& z,
                                 std::vector<Operator>& block) {
  const Entries e = entries_of(b, z);
  const double rotary = b.compression.rotary_head_size;
  append_normed_queries(b, z, e, block);
  append_keys(b, z, e, block);
  if (b.compression.selection.tokens > 0) append_entry_indexer(b, z, e, block);
  block.push_back(turned((z.tokens * (e.heads + 1) + e.made) * rotary, z.element));
  block.back().parts = LayerPart::LatentProjections;
  block.push_back(attention_to_entries(b, z, e));
  block.push_back(turned(z.tokens * e.heads * rotary, z.element));
  append_projections_of_groups(b, z, block);
}

}  // namespace interlock
