// Transformer: writes out the operators of decoder-only models.
// SPDX-License-Identifier: Apache-2.0
#include "models/transformer.h"

#include "models/block.h"

namespace interlock {
namespace {

Bytes boundary(const BlockSizes& z) { return Bytes(z.residual * z.element); }

Operator norm_of(const Transformer& t, const BlockSizes& z) {
  return sharded_norm({z.tokens, t.hidden_size, norm_parameters(t)}, z.sharding, z.element);
}

/// `experts`: with a mixture of experts in the place of the MLP.
std::vector<Operator> block_operators(const Transformer& t, const BlockSizes& z, bool experts) {
  const Operator norm = norm_of(t, z);
  const Operator add = residual(z.residual, z.element);
  std::vector<Operator> block = {norm};
  append_attention(t, z, block);
  if (t.dropout > 0) block.push_back(dropout(z.residual, z.element));
  block.push_back(add);
  // Below the first norm only the module before is waiting: for its gradient and the residual's.
  block.front().reads_module_input = true;
  block.back().reads_module_input = true;
  block.push_back(norm);
  if (experts) {
    append_experts(t, z, block);
  } else {
    append_mlp(t, t.ffn_hidden_size, z, block);
  }
  if (t.dropout > 0) block.push_back(dropout(z.residual, z.element));
  block.push_back(add);
  return block;
}

Operator position_table(const Transformer& t, const BlockSizes& z) {
  const ActivationParts parts = outer_parts(z.sharding);
  const std::int64_t width = t.hidden_size / parts.columns;
  double positions = static_cast<double>(part_of(t).length) / z.sharding.context;
  if (z.sharding.sequence_parallel) positions /= parts.rows;
  const Bytes rows(positions * static_cast<double>(width) * z.element);
  return {.forward = {.op_class = OpClass::Embedding, .bytes = boundary(z) * 2 + rows},
          .weight_gradient = {.op_class = OpClass::Embedding, .bytes = boundary(z) + rows},
          .parameters = t.max_positions * width,
          .gradients = boundary(z)};
}

std::vector<Operator> embedding_operators(const Transformer& t, const BlockSizes& z) {
  std::vector<Operator> operators = {
      sharded_lookup({z.tokens, t.vocab_size, t.hidden_size}, z.sharding, z.element)};
  if (t.positions == Transformer::Positions::Learned) operators.push_back(position_table(t, z));
  if (t.dropout > 0) operators.push_back(dropout(z.residual, z.element));
  return operators;
}

HeadSite site_of(const Transformer& t, const BuildOptions& options) {
  return {.kind = SiteKind::Sequence,
          .samples = static_cast<double>(options.micro_batch_size),
          .positions = static_cast<double>(part_of(t).length) / options.sharding.context,
          .width = t.hidden_size,
          .classes = t.vocab_size,
          .norm_parameters = norm_parameters(t),
          .sharding = options.sharding};
}

Module readout_module(const Transformer& t, const BlockSizes& z, const BuildOptions& options) {
  std::vector<Operator> operators = {norm_of(t, z)};
  operators.front().reads_module_input = true;
  for (const Operator& op : readout(site_of(t, options), false, z.element)) {
    operators.push_back(op);
  }
  const std::int64_t projection = operators[1].parameters;
  if (t.tied_embeddings) operators[1].parameters = 0;
  Module last = make_module({.name = "readout", .input = boundary(z), .recomputable = false},
                            operators, options);
  if (t.tied_embeddings) last.tied_parameters = projection;
  return last;
}

void append_blocks(const Transformer& t, const BlockSizes& z, const BuildOptions& options,
                   std::vector<Module>& modules) {
  Module block;
  for (int i = 0; i < t.layers; ++i) {
    // Most blocks are like the one before: those of long models are made a few times only.
    const bool experts = t.experts.count > 0 && i >= t.experts.dense_layers;
    if (i == 0 || i == t.experts.dense_layers || i == options.recompute_layers) {
      block = make_module(
          {.input = boundary(z) + kept_for_later(t, z, options), .output = boundary(z)},
          block_operators(t, z, experts), options_of_layer(options, static_cast<std::size_t>(i)));
    }
    modules.push_back(block);
    modules.back().name = "block" + std::to_string(i);
  }
}

void attach_heads(const Transformer& t, const BuildOptions& options, std::vector<Module>& modules) {
  HeadSpec head = t.head;
  if (!head.kind) head.kind = HeadKind::Lm;
  if (head.kind == HeadKind::LaterLayers) return attach_later_layers(head, options, modules);
  const Head made = make_head(head, site_of(t, options), options);
  for (std::size_t i = 0; i + 1 < modules.size(); ++i) modules[i].head = made;
}

std::function<ModelGraph(const TokenSlice&)> slicer(const Transformer& shape,
                                                    const BuildOptions& options) {
  // Without the head, whose document need not outlive the graph.
  const BuildOptions kept = {.micro_batch_size = options.micro_batch_size,
                             .precision = options.precision,
                             .optimizer = options.optimizer,
                             .recompute = options.recompute,
                             .recompute_layers = options.recompute_layers,
                             .sharding = options.sharding};
  return [=](const TokenSlice& slice) {
    Transformer part = shape;
    part.slice = slice;
    return build_transformer(part, kept);
  };
}

}  // namespace

ModelGraph build_transformer(const Transformer& shape, const BuildOptions& options) {
  const BlockSizes z = block_sizes(shape, options);
  ModelGraph graph = {.samples_per_micro_batch = options.micro_batch_size,
                      .tokens_per_sample = part_of(shape).length,
                      .attention_flops = shape.causal_flops ? "causal" : "full"};
  graph.modules.push_back(
      make_module({.name = "embedding", .output = boundary(z), .recomputable = false},
                  embedding_operators(shape, z), options));
  append_blocks(shape, z, options, graph.modules);
  graph.modules.push_back(readout_module(shape, z, options));
  if (!shape.slice) {
    attach_heads(shape, options, graph.modules);
    graph.slice = slicer(shape, options);
  }
  return graph;
}

}  // namespace interlock
