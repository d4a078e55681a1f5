// Latent attention: queries, keys and values made of vectors of low rank.
// SPDX-License-Identifier: Apache-2.0
//
// A token's keys and values come from one latent of kv_rank elements and, for its place, from
// rotary_head_size elements that all heads share; its queries from a latent of query_rank, or from
// the token itself. Latents are normalised. What makes latents is whole on every tensor device and
// works on its own part of the sequence; what makes heads of them is divided by heads. Attention
// then sees as many key heads as query heads; nothing is absorbed into other products, as in
// training. Source: DeepSeek-V2, arXiv 2405.04434, section 2.1 and appendix B.
//
// A token may choose those that it sees: an indexer of small heads, whose keys all heads share,
// scores every pair, and the best `tokens` are seen. Then keys are the latents themselves, which
// all heads read: queries are taken to their width before, and what heads make of them to values
// behind, by the matrices that make keys and values of them elsewhere. The indexer reads tokens and
// latents, learns from how attention spreads over what was chosen, and hands no gradient on; its
// matrices and scores are whole on every tensor device. Kernels that see chosen tokens alone are
// priced as those of fused attention. Source: DeepSeek-V3.2, arXiv 2512.02556, section 2.1, and
// megatron/core/transformer/experimental_attention_variant (NVIDIA/Megatron-LM d98e8a6) with
// dsa_indexer_use_sparse_loss and fused kernels.
#include <algorithm>
#include <cmath>

#include "models/transformer/mixers.h"

namespace interlock {
namespace {

/// From `rank` elements to `width` of each head; `beside` elements go with them to the devices that
/// have the heads.
struct Latent {
  int rank = 1;
  std::int64_t width = 1;
  int beside = 0;
};

/// From the tokens to `outputs` elements that every tensor device makes for its own part of them.
Operator down(const BlockForm& t, const StreamSizes& z, std::int64_t outputs) {
  const double rows = z.tokens / outer_parts(z.sharding).rows;
  Operator op = linear({rows, t.stream.hidden_size, outputs, t.bias.qkv}, z.element);
  op.linear = LinearName::Qkv;
  return op;
}

void append_heads(const BlockForm& t, const StreamSizes& z, const Latent& latent,
                  std::vector<Operator>& block) {
  block.push_back(sharded_norm({z.tokens, latent.rank, latent.rank}, z.sharding, z.element));
  Operator up = sharded_linear({z.tokens, latent.rank, latent.width * t.attention_heads, false},
                               LinearRole::Column, z.sharding, z.element);
  const double more = static_cast<double>(latent.rank + latent.beside) / latent.rank;
  for (auto* exchanges : {&up.forward_exchanges, &up.input_exchanges, &up.weight_exchanges}) {
    for (Exchange& one : *exchanges) one.bytes *= more;
  }
  up.parts |= LayerPart::LatentProjections;
  up.linear = LinearName::Qkv;
  block.push_back(up);
}

}  // namespace

void append_queries(const BlockForm& t, const StreamSizes& z, std::vector<Operator>& block) {
  if (t.latents.query_rank > 0) {
    block.push_back(down(t, z, t.latents.query_rank));
    append_heads(t, z, {.rank = t.latents.query_rank, .width = t.head_size}, block);
  } else {
    const std::int64_t width = static_cast<std::int64_t>(t.head_size) * t.attention_heads;
    block.push_back(sharded_linear({z.tokens, t.stream.hidden_size, width, false},
                                   LinearRole::Column, z.sharding, z.element));
    block.back().parts |= LayerPart::LatentProjections;
    block.back().linear = LinearName::Qkv;
  }
}

namespace {

/// Adds the product that makes latents of keys and values, with the elements that have places.
void append_key_latents(const BlockForm& t, const StreamSizes& z, std::vector<Operator>& block) {
  Operator shared = down(t, z, t.latents.kv_rank + t.latents.rotary_head_size);
  share_input(shared);  // the first product has kept the tokens
  shared.input_gradient.bytes += Bytes(z.residual * z.element);  // added to the first one's
  block.push_back(shared);
}

/// Sizes of attention to chosen tokens on one device.
struct Chosen {
  double heads = 1;            // of attention
  double key = 1, value = 1;   // elements of a token that scores, and their sums, read
  double pairs = 1, seen = 1;  // tokens that a token has scores with, and that it sees; on average
  double queries = 1, made = 1;  // elements of (tokens, heads, key) and of (tokens, heads, value)
};

Chosen chosen_of(const BlockForm& t, const StreamSizes& z) {
  const double sequence = t.stream.sequence_length;
  const double most = std::min<double>(t.latents.selection.tokens, sequence);
  Chosen c = {.heads = t.attention_heads * inner_parts(z.sharding).share(),
              .key = double(t.latents.kv_rank) + t.latents.rotary_head_size,
              .value = double(t.latents.kv_rank),
              .pairs = (sequence + 1) / 2,
              .seen = most * (sequence - (most - 1) / 2) / sequence};
  c.queries = z.tokens * c.heads * c.key;
  c.made = z.tokens * c.heads * c.value;
  return c;
}

/// Returns the matrix that makes keys without places, and values, of latents.
WeightMatrix up_matrix(const BlockForm& t, std::int64_t parameters) {
  const double columns =
      static_cast<double>(t.head_size - t.latents.rotary_head_size + t.value_head_size);
  return {.rows = static_cast<double>(t.latents.kv_rank),
          .columns = columns * t.attention_heads,
          .parameters = parameters};
}

/// Adds the indexer: its queries, its keys with their norm and the weights of its heads, the scores
/// of all pairs, and the choice. Scores are written in fp32, and read for the choice. Its loss
/// needs the sum of all heads' weights of attention to what was chosen, which is why their scores
/// are made once more, and added up over tensor devices; that is told of the backward, since there
/// is no loss without one. There its own scores of what was chosen are made again, too, and their
/// gradients for queries and keys. All of it lies in what `core_attn` names.
void append_indexer(const BlockForm& t, const StreamSizes& z, const Chosen& c,
                    std::vector<Operator>& block) {
  const Selection& s = t.latents.selection;
  const int rank = t.latents.query_rank > 0 ? t.latents.query_rank : t.stream.hidden_size;
  const std::size_t first = block.size();
  block.push_back(indexer_product(z, rank, std::int64_t{s.heads} * s.head_size));
  block.push_back(indexer_product(z, t.stream.hidden_size, s.head_size + s.heads));
  block.push_back(normalisation(z.tokens * s.head_size, 2 * s.head_size, z.element));
  append_choice(t, z, s,
                {.pairs = z.tokens * c.pairs,
                 .seen = z.tokens * c.seen,
                 .keys = z.tokens * s.head_size,
                 .attended = c.heads * c.key,
                 .read = c.queries + z.tokens * c.key},
                first, block);
}

/// Attention of all heads to the latents of chosen tokens, in one kernel: forward, scores and their
/// product with the latents; backward, the scores again and four gradients.
Operator chosen_attention(const BlockForm& t, const StreamSizes& z, const Chosen& c) {
  const double latents = z.tokens * c.key;
  Operator op;
  op.forward = {
      .op_class = OpClass::Attention,
      .flops = Flops(2 * c.seen * (c.queries + c.made)),
      .bytes = Bytes((c.queries + c.made + latents) * z.element),
      .variant = OpVariant::Fused,
      .shape = {static_cast<double>(t.stream.sequence_length), c.seen, c.key, z.samples * c.heads}};
  op.input_gradient = op.forward;
  op.input_gradient.flops = Flops(2 * c.seen * (3 * c.queries + 2 * c.made));
  op.input_gradient.bytes = op.forward.bytes * 2;
  op.input_gradient.counted = op.forward.flops * 2;
  op.gradients = op.forward.bytes;
  op.stash = Bytes((c.queries + latents) * z.element);
  op.inner_stash = Bytes(z.tokens * c.heads * 4);
  op.outputs = {Bytes(c.made * z.element)};  // which the next product keeps for its backward, too
  op.parts = LayerPart::CoreAttention;
  op.remade = LayerPart::LatentProjections;
  return op;
}

}  // namespace

/// Both products of heads in chosen attention are of the matrix that makes keys and values of
/// latents elsewhere: one of them has it, whole, for those who ask for matrices.
Operator product_of_each(double count, const Linear& shape, double element) {
  Operator op = linear(shape, element);
  for (Work* work : {&op.forward, &op.input_gradient, &op.weight_gradient}) {
    work->flops *= count;
    work->bytes *= count;
    if (work->counted) *work->counted *= count;
    work->shape.batch = count;
  }
  keep_wide(op);
  op.parameters = std::llround(static_cast<double>(op.parameters) * count);
  op.matrices.clear();
  op.stash *= count;
  op.gradients *= count;
  for (Bytes& output : op.outputs) output *= count;
  return op;
}

void end_gradients(Operator& op) {
  op.input_gradient = {};
  op.input_gradient.launches = 0;
  op.input_exchanges.clear();
}

Operator indexer_product(const StreamSizes& z, std::int64_t inputs, std::int64_t outputs) {
  Operator op = linear({z.tokens, inputs, outputs, false}, z.element);
  end_gradients(op);
  op.keeps_narrow = true;
  if (z.sharding.sequence_parallel && z.sharding.tensor > 1) {
    op.forward_exchanges = {{.kind = CollectiveKind::AllGather,
                             .axis = MeshAxis::Tensor,
                             .bytes = Bytes(z.tokens * static_cast<double>(inputs) * z.element)}};
  } else {
    share_input(op);  // others have kept it
  }
  return op;
}

void append_choice(const BlockForm& t, const StreamSizes& z, const Selection& s, const Choice& c,
                   std::size_t first, std::vector<Operator>& block) {
  const double width = double(s.heads) * s.head_size;
  const double read = (z.tokens * (width + s.heads) + c.keys) * z.element;
  Operator scores;
  scores.forward = {.op_class = OpClass::Attention,
                    .flops = Flops(2 * c.pairs * width),
                    .bytes = Bytes(read + 4 * c.pairs),
                    .variant = OpVariant::Fused,
                    .shape = {static_cast<double>(t.stream.sequence_length), c.pairs / z.tokens,
                              static_cast<double>(s.head_size), z.samples * s.heads}};
  scores.input_gradient = scores.forward;
  scores.input_gradient.flops = Flops(3 * 2 * c.seen * width + 2 * c.seen * c.attended);
  scores.input_gradient.counted = Flops(2 * 2 * c.seen * width);
  scores.input_gradient.bytes = Bytes(2 * read + c.read * z.element + 3 * 4 * c.seen);
  scores.input_gradient.launches = 2;
  scores.stash = Bytes(read);
  scores.gradients = Bytes(read + 2 * 4 * c.seen);
  if (z.sharding.tensor > 1) {
    scores.input_exchanges = {
        {.kind = CollectiveKind::AllReduce, .axis = MeshAxis::Tensor, .bytes = Bytes(4 * c.seen)}};
  }
  block.push_back(scores);
  for (std::size_t i = first; i < block.size(); ++i) block[i].learns_alone = true;
  Operator choice;
  choice.forward = {.op_class = OpClass::Elementwise, .bytes = Bytes(4 * (c.pairs + c.seen))};
  end_gradients(choice);
  choice.stash = Bytes(4 * c.seen);  // places
  block.push_back(choice);
  mark_part(block, first, LayerPart::CoreAttention);
  for (std::size_t i = first; i < block.size(); ++i) {
    block[i].remade |= LayerPart::CoreAttention;
  }
}

void append_latents(const BlockForm& t, const StreamSizes& z, std::vector<Operator>& block) {
  append_queries(t, z, block);
  append_key_latents(t, z, block);
  const int rotary = t.latents.rotary_head_size;
  append_heads(t, z,
               {.rank = t.latents.kv_rank,
                .width = t.head_size - rotary + t.value_head_size,
                .beside = rotary},
               block);
}

void append_chosen_attention(const BlockForm& t, const StreamSizes& z,
                             std::vector<Operator>& block) {
  const Latents& l = t.latents;
  const Chosen c = chosen_of(t, z);
  append_queries(t, z, block);
  append_key_latents(t, z, block);
  Operator norm = sharded_norm({z.tokens, l.kv_rank, l.kv_rank}, z.sharding, z.element);
  block.push_back(norm);
  append_indexer(t, z, c, block);
  // Latents go to all tensor devices as they do where heads are made of them.
  const auto of_heads = [&](std::int64_t inputs, std::int64_t outputs) {
    return product_of_each(c.heads, {z.tokens, inputs, outputs, false}, z.element);
  };
  Operator in = of_heads(t.head_size - l.rotary_head_size, l.kv_rank);
  const Operator up = sharded_linear({z.tokens, l.kv_rank, t.attention_heads, false},
                                     LinearRole::Column, z.sharding, z.element);
  in.forward_exchanges = up.forward_exchanges;
  in.input_exchanges = up.input_exchanges;
  for (auto* exchanges : {&in.forward_exchanges, &in.input_exchanges}) {
    for (Exchange& one : *exchanges) one.bytes *= c.key / l.kv_rank;
  }
  in.parts = in.remade = LayerPart::LatentProjections;
  Operator out = of_heads(l.kv_rank, t.value_head_size);
  in.matrices = {up_matrix(t, in.parameters + out.parameters)};
  block.push_back(in);
  const double turned = z.tokens * (c.heads + 1) * l.rotary_head_size;
  block.push_back(elementwise(
      {.forward = 2 * turned, .backward = 2 * turned, .gradients = 2 * turned}, z.element));
  block.back().parts = LayerPart::LatentProjections;
  block.push_back(chosen_attention(t, z, c));
  block.push_back(out);
  Operator output =
      sharded_linear({z.tokens, static_cast<std::int64_t>(t.value_head_size) * t.attention_heads,
                      t.stream.hidden_size, t.bias.projection},
                     LinearRole::Row, z.sharding, z.element);
  output.linear = LinearName::Projection;
  block.push_back(output);
}

}  // namespace interlock
