// Encoder: images or words in front of a decoder.
// SPDX-License-Identifier: Apache-2.0
//
// A source of words (T5, arXiv 1910.10683) goes through the blocks and a norm, which is the first
// thing that the embedding of the decoder's tokens does; then it travels with every module's output
// to the last block, since all of them read it.
//
// The images of a sample, whose tokens stand in the sequence, go through a transformer of patches.
// Then squares of merge x merge patches become one token each, by their mean (Gemma 3, arXiv
// 2503.19786, section 2), side by side (Qwen2.5-VL, arXiv 2502.13923, section 2.1; LLaVA, arXiv
// 2304.08485, merges none) or by a product (Mistral 3: transformers 00dcc6d, modeling_mistral3.py),
// and one product, or several with activations between them, makes them as wide as the decoder's. A
// token for a whole image, if there is one, ends at the last block. The encoder's modules come
// first; the embedding looks up the other tokens of the sequence and puts these between them.
//
// Layers in `deepstack` make such tokens too, in the module of their block; the first decoder
// blocks add them to their own. Until then they travel with every module's output.
#include "models/transformer/block.h"

namespace interlock {
namespace {

using MergeBy = Transformer::Connector::MergeBy;

BuildOptions of_images(const Transformer& encoder, const BuildOptions& options) {
  BuildOptions own = options;
  own.micro_batch_size *= encoder.images;
  own.wide_layers = {};  // of decoders
  return own;
}

/// Returns the bytes of an encoder's tokens, as wide as the decoder.
Bytes image_boundary(const Transformer& t, const StreamSizes& z) {
  const Transformer& e = t.encoder.front();
  const double tokens = z.samples / e.images * e.image_tokens();
  return Bytes(tokens * t.stream.hidden_size * outer_parts(z.sharding).share() * z.element);
}

/// Sizes of the way from patches to tokens.
struct Passage {
  double rows = 1;              // tokens of a micro-batch
  std::int64_t inputs = 1;      // numbers of a token, once merged
  std::vector<int> widths;      // of what the products make, the decoder's the last
  Transformer::Connector form;  // whose norm is that of this passage
};

Passage passage_of(const Transformer& e, const StreamSizes& z, int width) {
  const Transformer::Connector& c = e.connector;
  const std::int64_t hidden = e.stream.hidden_size;
  Passage p = {.rows = z.tokens / e.stream.sequence_length * e.image_tokens() / e.images,
               .inputs = c.merge_by == MergeBy::Concatenation ? hidden * c.merge * c.merge : hidden,
               .widths = c.widths,
               .form = c};
  p.widths.push_back(width);
  return p;
}

/// Adds one product, whole on every tensor device for its own part of the tokens; or several with
/// an activation between them, the first divided by columns and the second by rows.
void append_products(const Passage& p, const StreamSizes& z, std::vector<Operator>& operators) {
  const double own = p.rows / outer_parts(z.sharding).rows;
  const bool bias = p.form.bias;
  std::int64_t inputs = p.inputs;
  for (std::size_t i = 0; i < p.widths.size(); ++i) {
    const std::int64_t made = p.widths[i];
    const bool paired = i / 2 * 2 + 1 < p.widths.size();  // with the one behind or before it
    if (i > 0) {
      const double parts =
          i % 2 == 1 ? inner_parts(z.sharding).share() : outer_parts(z.sharding).share();
      const double elements = p.rows * static_cast<double>(inputs) * parts;
      operators.push_back(elementwise({.forward = 2 * elements,
                                       .backward = 3 * elements,
                                       .stash = elements,
                                       .gradients = 2 * elements,
                                       .variant = OpVariant::Gelu},
                                      z.element));
    }
    const LinearRole role = i % 2 == 0 ? LinearRole::Column : LinearRole::Row;
    operators.push_back(
        paired ? sharded_linear({p.rows, inputs, made, bias}, role, z.sharding, z.element)
               : linear({own, inputs, made, bias}, z.element));
    inputs = made;
  }
}

/// Makes tokens of squares of patches: merging, norm, products.
std::vector<Operator> merged(const Transformer& e, const StreamSizes& z, const Passage& p) {
  const std::int64_t hidden = e.stream.hidden_size;
  const std::int64_t square = hidden * p.form.merge * p.form.merge;
  const double outer = outer_parts(z.sharding).share();
  const bool mean = p.form.merge_by == MergeBy::Mean;
  std::vector<Operator> operators;
  if (mean) {
    const double read = p.rows * static_cast<double>(square) * outer;
    const double made = p.rows * static_cast<double>(hidden) * outer;
    operators.push_back(elementwise(
        {.forward = read + made, .backward = read + made, .gradients = read + made}, z.element));
  }
  if (p.form.norm != Transformer::Connector::Norm::None) {
    const int vectors = p.form.norm == Transformer::Connector::Norm::Rms ? 1 : 2;
    const std::int64_t normed = mean ? hidden : square;  // numbers of a row
    const std::int64_t of = p.form.norm_of_square ? normed : hidden;
    const std::int64_t each = normed / of;  // normalised vectors of a row
    operators.push_back(sharded_norm({p.rows * static_cast<double>(each), of, vectors * of},
                                     z.sharding, z.element));
  }
  if (p.form.merge_by == MergeBy::Product) {
    const double own = p.rows / outer_parts(z.sharding).rows;
    operators.push_back(linear({own, square, hidden, p.form.bias}, z.element));
  }
  append_products(p, z, operators);
  return operators;
}

std::vector<Operator> connector(const Transformer& e, const StreamSizes& z, int width) {
  std::vector<Operator> operators;
  if (e.final_norm) operators.push_back(norm_of(e.stream, z));
  for (const Operator& op : merged(e, z, passage_of(e, z, width))) operators.push_back(op);
  return operators;
}

/// Returns the connector of one layer, whose squares have a norm of their own.
std::vector<Operator> connector_of_layer(const Transformer& e, const StreamSizes& z, int width) {
  Passage p = passage_of(e, z, width);
  p.form.norm = Transformer::Connector::Norm::Layer;
  p.form.norm_of_square = true;
  return merged(e, z, p);
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
  if (t.reads_source()) return;
  std::vector<Operator> operators = connector(e, z, t.stream.hidden_size);
  operators.front().reads_module_input = true;
  modules.push_back(make_module({.name = "connector",
                                 .input = boundary(z),
                                 .output = image_boundary(t, z),
                                 .recomputable = false,
                                 .layers = true},
                                operators, own));
}

void append_deepstack(const Transformer& t, const BuildOptions& options,
                      std::vector<Module>& modules) {
  const Transformer& e = t.encoder.front();
  const StreamSizes z = encoder_sizes(e, options);
  const Bytes tokens = image_boundary(t, z);
  const double elements = tokens.value() / z.element;
  const Module made =
      make_module({.input = boundary(z), .output = tokens, .recomputable = false, .layers = true},
                  connector_of_layer(e, z, t.stream.hidden_size), of_images(e, options));
  const Module added = make_module(
      {.output = boundary(stream_sizes(t.stream, options)), .recomputable = false, .layers = true},
      {residual(elements, z.element)}, options);
  const std::size_t blocks = 1 + e.layers.size() + 2;  // behind connector and embedding
  for (std::size_t i = 0; i < e.connector.deepstack.size(); ++i) {
    const std::size_t from = 1 + static_cast<std::size_t>(e.connector.deepstack[i]);
    append_module(modules[from], made);
    append_module(modules[blocks + i], added);
    for (std::size_t k = from; k < blocks + i; ++k) modules[k].output += tokens;
  }
}

}  // namespace interlock
