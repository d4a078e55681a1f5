// Latent attention: queries, keys and values made of vectors of low rank.
// SPDX-License-Identifier: Apache-2.0
//
// A token's keys and values come from one latent of kv_rank elements and, for its place, from
// rotary_head_size elements that all heads share; its queries from a latent of query_rank, or from
// the token itself. Latents are normalised. What makes latents is whole on every tensor device and
// works on its own part of the sequence; what makes heads of them is divided by heads. Attention
// then sees as many key heads as query heads; nothing is absorbed into other products, as in
// training. Source: DeepSeek-V2, arXiv 2405.04434, section 2.1 and appendix B.
#include "models/transformer/block.h"

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

void append_latents(const BlockForm& t, const StreamSizes& z, std::vector<Operator>& block) {
  const int rotary = t.latents.rotary_head_size;
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
  Operator shared = down(t, z, t.latents.kv_rank + rotary);
  share_input(shared);  // the first product has kept the tokens
  shared.input_gradient.bytes += Bytes(z.residual * z.element);  // added to the first one's
  block.push_back(shared);
  append_heads(t, z,
               {.rank = t.latents.kv_rank,
                .width = t.head_size - rotary + t.value_head_size,
                .beside = rotary},
               block);
}

}  // namespace interlock
