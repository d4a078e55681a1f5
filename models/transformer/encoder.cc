// Encoder: images in front of a decoder, whose tokens stand in its sequence.
// SPDX-License-Identifier: Apache-2.0
//
// The images of a sample go through a transformer of patches. Then squares of merge x merge patches
// become one token each, by their mean (Gemma 3, arXiv 2503.19786, section 2) or side by side
// (Qwen2.5-VL, arXiv 2502.13923, section 2.1; LLaVA, arXiv 2304.08485, merges none), and one
// product, or two with an activation between them, makes them as wide as the decoder's. A token for
// a whole image, if there is one, ends at the last block. The encoder's modules come first; the
// embedding looks up the other tokens of the sequence and puts these between them.
#include "models/transformer/block.h"

namespace interlock {
namespace {

BuildOptions of_images(const Transformer& encoder, const BuildOptions& options) {
  BuildOptions own = options;
  own.micro_batch_size *= encoder.images;
  return own;
}

/// Squares of patches to tokens: norm, merging, products.
std::vector<Operator> connector(const Transformer& e, const StreamSizes& z, int width) {
  const Transformer::Connector& c = e.connector;
  const double rows = z.tokens / e.stream.sequence_length * e.image_tokens() / e.images;
  const std::int64_t hidden = e.stream.hidden_size, square = c.merge * c.merge;
  const std::int64_t inputs = c.mean ? hidden : hidden * square;
  const double outer = outer_parts(z.sharding).share();
  std::vector<Operator> operators;
  if (e.final_norm) operators.push_back(norm_of(e.stream, z));
  if (c.mean) {
    const double read = rows * static_cast<double>(hidden * square) * outer;
    const double made = rows * static_cast<double>(hidden) * outer;
    operators.push_back(elementwise(
        {.forward = read + made, .backward = read + made, .gradients = read + made}, z.element));
  }
  if (c.norm != Transformer::Connector::Norm::None) {
    const int vectors = c.norm == Transformer::Connector::Norm::Rms ? 1 : 2;
    operators.push_back(
        sharded_norm({rows * static_cast<double>(inputs / hidden), hidden, vectors * hidden},
                     z.sharding, z.element));
  }
  if (c.hidden_size == 0) {  // whole on every tensor device, for its own part of the tokens
    const double own = rows / outer_parts(z.sharding).rows;
    operators.push_back(linear({own, inputs, width, c.bias}, z.element));
    return operators;
  }
  const double elements = rows * c.hidden_size * inner_parts(z.sharding).share();
  operators.push_back(sharded_linear({rows, inputs, c.hidden_size, c.bias}, LinearRole::Column,
                                     z.sharding, z.element));
  operators.push_back(elementwise({.forward = 2 * elements,
                                   .backward = 3 * elements,
                                   .stash = elements,
                                   .gradients = 2 * elements,
                                   .variant = OpVariant::Gelu},
                                  z.element));
  operators.push_back(
      sharded_linear({rows, c.hidden_size, width, c.bias}, LinearRole::Row, z.sharding, z.element));
  return operators;
}

}  // namespace

StreamSizes encoder_sizes(const Transformer& encoder, const BuildOptions& options) {
  return stream_sizes(encoder.stream, of_images(encoder, options));
}

void append_encoder(const Transformer& t, const BuildOptions& options,
                    std::vector<Module>& modules) {
  const Transformer& e = t.encoder.front();
  const BuildOptions own = of_images(e, options);
  const StreamSizes z = encoder_sizes(e, options);
  modules.push_back(embedding_module(e, z, own));
  modules.back().name = "encoder.embedding";
  append_blocks(e, own, "encoder.block", 0, modules);
  std::vector<Operator> operators = connector(e, z, t.stream.hidden_size);
  operators.front().reads_module_input = true;
  const double tokens = static_cast<double>(options.micro_batch_size) * e.image_tokens();
  const Bytes output(tokens * t.stream.hidden_size * outer_parts(z.sharding).share() * z.element);
  modules.push_back(make_module({.name = "connector",
                                 .input = boundary(z),
                                 .output = output,
                                 .recomputable = false,
                                 .layers = true},
                                operators, own));
}

}  // namespace interlock
