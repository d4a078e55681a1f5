// Transformer input: tokens or patches of images to vectors, and what is added to them.
// SPDX-License-Identifier: Apache-2.0
#include "models/transformer/block.h"

namespace interlock {
namespace {

/// A table (entries, hidden_size) of which `rows` rows are read, each for several tokens, and added
/// to them.
Operator added_table(const Transformer& t, const BlockSizes& z, int entries, double rows) {
  const std::int64_t width = t.hidden_size / outer_parts(z.sharding).columns;
  const Bytes read(rows * static_cast<double>(width) * z.element);
  return {.forward = {.op_class = OpClass::Embedding, .bytes = boundary(z) * 2 + read},
          .weight_gradient = {.op_class = OpClass::Embedding, .bytes = boundary(z) + read},
          .parameters = entries * width,
          .matrices = {{.rows = static_cast<double>(entries),
                        .columns = static_cast<double>(t.hidden_size),
                        .parameters = entries * width,
                        .hidden = false}},
          .gradients = boundary(z)};
}

Operator position_table(const Transformer& t, const BlockSizes& z) {
  double positions = static_cast<double>(part_of(t).length) / z.sharding.context;
  if (z.sharding.sequence_parallel) positions /= outer_parts(z.sharding).rows;
  return added_table(t, z, t.max_positions, positions);
}

/// Pixels of each patch times weights, whole on every tensor device, and one more token, the same
/// in every image. No gradient of pixels is needed.
/// Source: Dosovitskiy et al., An Image is Worth 16x16 Words, arXiv 2010.11929, section 3.1.
void append_patches(const Transformer& t, const BlockSizes& z, std::vector<Operator>& operators) {
  const Transformer::Patches& patches = t.patches;
  const double tokens = z.tokens / outer_parts(z.sharding).rows;
  const double rows = tokens * (patches.tokens() - 1) / patches.tokens();
  const std::int64_t pixels =
      static_cast<std::int64_t>(patches.channels) * patches.size * patches.size;
  Operator projection = linear({rows, pixels, t.hidden_size, true}, z.element);
  projection.input_gradient = {.launches = 0};
  operators.push_back(projection);
  Operator first = elementwise({.forward = 2 * z.residual, .gradients = z.residual}, z.element);
  first.input_gradient = {.launches = 0};
  first.parameters = t.hidden_size;
  operators.push_back(first);
}

}  // namespace

Module embedding_module(const Transformer& t, const BlockSizes& z, const BuildOptions& options) {
  std::vector<Operator> operators;
  if (t.patches.image_size > 0) {
    append_patches(t, z, operators);
  } else {
    operators.push_back(
        sharded_lookup({z.tokens, t.vocab_size, t.hidden_size}, z.sharding, z.element));
  }
  if (t.positions == Transformer::Positions::Learned) operators.push_back(position_table(t, z));
  if (t.token_types > 0) operators.push_back(added_table(t, z, t.token_types, t.token_types));
  if (t.embedding_norm) operators.push_back(norm_of(t, z));
  if (t.dropout > 0) operators.push_back(dropout(z.residual, z.element));
  return make_module({.name = "embedding", .output = boundary(z), .recomputable = false}, operators,
                     options);
}

}  // namespace interlock
