// Transformer input: tokens or patches of images to vectors, and what is added to them.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include "models/transformer/block.h"

namespace interlock {
namespace {

/// Returns a table (entries, hidden_size) of which `rows` rows are read, each for several tokens,
/// and added to them.
Operator added_table(const Transformer& t, const StreamSizes& z, int entries, double rows) {
  const std::int64_t width = t.stream.hidden_size / outer_parts(z.sharding).columns;
  const Bytes read(rows * static_cast<double>(width) * z.element);
  return {.forward = {.op_class = OpClass::Embedding, .bytes = boundary(z) * 2 + read},
          .weight_gradient = {.op_class = OpClass::Embedding, .bytes = boundary(z) + read},
          .parameters = entries * width,
          .table = entries * width,
          .matrices = {{.rows = static_cast<double>(entries),
                        .columns = static_cast<double>(t.stream.hidden_size),
                        .parameters = entries * width,
                        .hidden = false}},
          .gradients = boundary(z)};
}

Operator position_table(const Transformer& t, const StreamSizes& z) {
  double positions = static_cast<double>(part_of(t.stream).length) / z.sharding.context;
  if (z.sharding.sequence_parallel) positions /= outer_parts(z.sharding).rows;
  return added_table(t, z, t.max_positions, positions);
}

/// Returns a number for each head and bucket of distances, read once for each pair of places.
Operator distance_table(const Transformer& t, const StreamSizes& z) {
  const double heads = t.forms.front().attention_heads * inner_parts(z.sharding).share();
  const double places = t.stream.sequence_length;
  const Bytes made(heads * places * places * z.element);
  const double parameters = heads * t.position_buckets;
  return {.forward = {.op_class = OpClass::Embedding, .bytes = made},
          .weight_gradient = {.op_class = OpClass::Embedding, .bytes = made},
          .parameters = std::llround(parameters),
          .table = std::llround(parameters),
          .matrices = {{.rows = static_cast<double>(t.position_buckets),
                        .columns = heads,
                        .parameters = std::llround(parameters),
                        .hidden = false}},
          .gradients = made};
}

/// Pixels of each patch times weights, whole on every tensor device, and perhaps one more token,
/// the same in every image. No gradient of pixels is needed. Source: Dosovitskiy et al., An Image
/// is Worth 16x16 Words, arXiv 2010.11929, section 3.1.
void append_patches(const Transformer& t, const StreamSizes& z, std::vector<Operator>& operators) {
  const Transformer::Patches& patches = t.patches;
  const double tokens = z.tokens / outer_parts(z.sharding).rows;
  const double rows = tokens * patches.side() * patches.side() / patches.tokens();
  const std::int64_t pixels =
      static_cast<std::int64_t>(patches.channels) * patches.size * patches.size;
  Operator projection = linear({rows, pixels, t.stream.hidden_size, patches.bias}, z.element);
  projection.input_gradient = {.launches = 0};
  operators.push_back(projection);
  if (!patches.class_token) return;
  Operator first = elementwise({.forward = 2 * z.residual, .gradients = z.residual}, z.element);
  first.input_gradient = {.launches = 0};
  first.parameters = t.stream.hidden_size;
  operators.push_back(first);
}

/// Returns the table of all words. Where every tensor device holds it whole, and goes on with its
/// part of the sequence, the gradients of all parts are gathered.
Operator word_table(const Transformer& t, const StreamSizes& z, double tokens,
                    const Framework& framework) {
  const Lookup whole = {tokens, t.vocab_size, t.stream.hidden_size};
  if (!framework.gathers_vocabulary) return sharded_lookup(whole, z.sharding, z.element);
  Operator table = sharded_lookup(whole, Sharding{}, z.element);
  if (!z.sharding.sequence_parallel) return table;
  const Bytes vectors(tokens * static_cast<double>(t.stream.hidden_size) * z.element);
  table.weight_exchanges = {{.kind = CollectiveKind::AllGather, .bytes = vectors}};
  return table;
}

/// Finds the vectors of the tokens that no encoder makes, and puts the encoder's between them.
void append_words(const Transformer& t, const StreamSizes& z, const Framework& framework,
                  std::vector<Operator>& operators) {
  const bool sees = !t.encoder.empty() && !t.reads_source();
  const double made = sees ? z.samples * t.encoder.front().image_tokens() : 0;
  operators.push_back(word_table(t, z, z.tokens - made, framework));
  if (made == 0) return;
  const double elements = made * t.stream.hidden_size * outer_parts(z.sharding).share();
  operators.push_back(elementwise(
      {.forward = 2 * elements, .backward = 2 * elements, .gradients = z.residual + elements},
      z.element));
  operators.back().reads_module_input = true;
}

/// The table is the encoder's; only the stage that has both keeps it once.
Module sourced_embedding(const Transformer& t, const StreamSizes& z,
                         std::vector<Operator> operators, const BuildOptions& options) {
  const Transformer& e = t.encoder.front();
  const StreamSizes source = encoder_sizes(e, options);
  Operator& lookup = operators.front();
  const std::int64_t shared = std::exchange(lookup.parameters, 0);
  const std::vector<WeightMatrix> matrices = std::exchange(lookup.matrices, {});
  if (e.final_norm) {
    operators.insert(operators.begin(), norm_of(e.stream, source));
    operators.front().reads_module_input = true;
  }
  Module module = make_module({.name = "embedding",
                               .input = boundary(source),
                               .output = boundary(z) + boundary(source),
                               .recomputable = false},
                              operators, options);
  module.tied_parameters = shared;
  module.tied_matrices = matrices;
  module.tied_frozen = options.adapters.rank > 0;
  return module;
}

}  // namespace

Module embedding_module(const Transformer& t, const StreamSizes& z, const BuildOptions& options) {
  std::vector<Operator> operators;
  if (t.patches.image_size > 0) {
    append_patches(t, z, operators);
  } else {
    append_words(t, z, options.framework, operators);
  }
  if (t.max_positions > 0) operators.push_back(position_table(t, z));
  if (t.token_types > 0) operators.push_back(added_table(t, z, t.token_types, t.token_types));
  if (t.position_buckets > 0) operators.push_back(distance_table(t, z));
  if (t.embedding_norm) operators.push_back(norm_of(t.stream, z));
  if (t.stream.dropout > 0) operators.push_back(dropout(z.residual, z.element));
  if (z.streams > 1) operators.push_back(stream_copies(stream_rows(t.stream, z), z.element));
  if (t.reads_source()) return sourced_embedding(t, z, operators, options);
  return make_module({.name = "embedding", .output = crossing(z), .recomputable = false}, operators,
                     options);
}

}  // namespace interlock
