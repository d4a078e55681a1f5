// Multi-token prediction: further blocks that predict the tokens behind the next one.
// SPDX-License-Identifier: Apache-2.0
//
// The k-th of them reads what the one before it (or the last block) made of the tokens, and the
// embedding of the tokens k further on: both are normalised, put side by side and projected to
// hidden_size; a block follows, of the form that the model gives such blocks or of the last
// layer's, and a norm, the vocabulary projection and a loss of its own. Several residual streams
// (hyper-connections) are projected each by itself, and the embedding beside them. Embedding and
// vocabulary projection are those of the model. All of it is part of the last module, as its losses
// are: no partition cuts there. Source: DeepSeek-V3, arXiv 2412.19437, section 2.2.
#include "models/transformer/block.h"

namespace interlock {
namespace {

/// Embedding, both norms and the projection. The embedding's weights are the model's.
std::vector<Operator> joined(const Transformer& t, const StreamSizes& z) {
  Operator lookup =
      sharded_lookup({z.tokens, t.vocab_size, t.stream.hidden_size}, z.sharding, z.element);
  lookup.parameters = 0;
  lookup.matrices.clear();
  Operator norms = norm_of(t.stream, z);
  const double normed = 1 + z.streams;
  norms.parameters *= 2;
  norms.stash *= normed;
  norms.gradients *= normed;
  for (Work* work : {&norms.forward, &norms.input_gradient, &norms.weight_gradient}) {
    work->bytes *= normed;
    work->launches *= 2;
  }
  // Whole on every tensor device, each for its own part of the tokens.
  const std::int64_t hidden = t.stream.hidden_size;
  const double rows = z.tokens / outer_parts(z.sharding).rows;
  if (z.streams > 1) {
    // A product of the embedding, and one of each stream, to which the first is added.
    const double added = z.residual * (1 + 2 * z.streams);
    return {lookup, norms, linear({rows, hidden, hidden, false}, z.element),
            linear({rows * z.streams, hidden, hidden, false}, z.element),
            elementwise({.forward = added,
                         .backward = z.residual * (1 + z.streams),
                         .gradients = z.residual * (1 + z.streams)},
                        z.element)};
  }
  return {lookup, norms, linear({rows, 2 * hidden, hidden, false}, z.element)};
}

std::vector<Operator> own_readout(const Transformer& t, const StreamSizes& z,
                                  const BuildOptions& options) {
  std::vector<Operator> operators;
  if (z.streams > 1) append_stream_end(stream_rows(t.stream, z), z.element, operators);
  operators.push_back(norm_of(t.stream, z));
  for (Operator op : readout(site_of(t, options), false, z.element)) {
    op.parameters = 0;
    op.matrices.clear();
    operators.push_back(op);
  }
  return operators;
}

}  // namespace

void append_later_tokens(const Transformer& t, const StreamSizes& z, const BuildOptions& options,
                         Module& last) {
  const Bytes through = crossing(z);
  const BlockForm& form = t.later_form ? *t.later_form : t.block_of(t.layers.size() - 1);
  for (int i = 0; i < t.later_tokens; ++i) {
    const std::size_t layer = t.layers.size() + static_cast<std::size_t>(i);
    const ModuleFrame whole = {
        .input = through, .output = through, .recomputable = false, .layers = true};
    append_module(last, make_module(whole, joined(t, z), options));
    append_module(last, block_module(form, options_of_layer(options, layer)));
    append_module(last, make_module(whole, own_readout(t, z, options), options));
  }
  if (last.tied_parameters == 0) {
    const Operator lookup =
        sharded_lookup({z.tokens, t.vocab_size, t.stream.hidden_size}, z.sharding, z.element);
    last.tied_parameters = lookup.parameters;
    last.tied_matrices = lookup.matrices;
  }
}

}  // namespace interlock
