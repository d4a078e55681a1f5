// Transformer: writes out the operators of blocks, and chains modules.
// SPDX-License-Identifier: Apache-2.0
#include "models/transformer/transformer.h"

#include "models/transformer/block.h"

namespace interlock {
namespace {

/// Adds the operators of one half of a block to a list: attention, or what comes behind it.
using Half = void (*)(const Transformer&, const BlockSizes&, std::vector<Operator>&);

void append_dense(const Transformer& t, const BlockSizes& z, std::vector<Operator>& block) {
  const std::size_t first = block.size();
  append_mlp(t, t.ffn_hidden_size, z, block);
  mark_part(block, first, LayerPart::Mlp);
}

void append_dropout(const Transformer& t, const BlockSizes& z, std::vector<Operator>& block) {
  if (t.dropout > 0) block.push_back(dropout(z.residual, z.element));
}

/// Adds the norm that a half begins with, whose output the half's first operator keeps.
void append_normed(const Transformer& t, const BlockSizes& z, Half half,
                   std::vector<Operator>& block) {
  const std::size_t norm = block.size();
  block.push_back(norm_of(t, z));
  half(t, z, block);
  block[norm].parts |= LayerPart::Norms;
  block[norm + 1].remade |= LayerPart::Norms;
}

/// One half with its norm, before it or behind the sum. Returns where the sum is.
std::size_t append_half(const Transformer& t, const BlockSizes& z, Half half,
                        std::vector<Operator>& block) {
  const std::size_t first = block.size();
  t.post_norm ? half(t, z, block) : append_normed(t, z, half, block);
  append_dropout(t, z, block);
  const std::size_t sum = block.size();
  wait_beside(block, first, sum - 1, boundary(z));
  block.push_back(residual(z.residual, z.element));
  if (t.post_norm) block.push_back(norm_of(t, z));
  return sum;
}

/// Both halves read the block's input, each behind its own norm, and are added to it together, so
/// that tensor devices add up their parts of both at once.
/// Source: GPT-NeoX-20B, arXiv 2204.06745, section 2.1.
std::vector<Operator> parallel_block(const Transformer& t, const BlockSizes& z, Half second) {
  std::vector<Operator> block;
  append_normed(t, z, append_attention, block);
  block.front().reads_module_input = true;
  const auto of_tensor = [](const Exchange& one) { return one.axis == MeshAxis::Tensor; };
  std::erase_if(block.back().forward_exchanges, of_tensor);
  std::erase_if(block.back().input_exchanges, of_tensor);
  append_dropout(t, z, block);
  const std::size_t attention_end = block.size();
  append_normed(t, z, second, block);
  block[attention_end].stash = Bytes(0);  // the first norm has kept the input
  block[attention_end].reads_module_input = true;
  append_dropout(t, z, block);
  wait_beside(block, 0, attention_end - 1, boundary(z));
  wait_beside(block, attention_end, block.size() - 1, boundary(z));
  wait_beside(block, 0, attention_end,
              boundary(z));  // what the second half has made of its input's
  for (int sum = 0; sum < 2; ++sum) {
    block.push_back(residual(z.residual, z.element));
    block.back().reads_module_input = true;
  }
  return block;
}

/// `experts`: with a mixture of experts in the place of the MLP.
std::vector<Operator> block_operators(const Transformer& t, const BlockSizes& z, bool experts) {
  const Half second = experts ? append_experts : append_dense;
  if (t.parallel_residual) return parallel_block(t, z, second);
  std::vector<Operator> block;
  const std::size_t sum = append_half(t, z, append_attention, block);
  // Below its first operator only the module before is waiting: for its gradient and the sum's.
  block.front().reads_module_input = true;
  block[sum].reads_module_input = true;
  append_half(t, z, second, block);
  return block;
}

void append_blocks(const Transformer& t, const BlockSizes& z, const BuildOptions& options,
                   std::vector<Module>& modules) {
  Module block;
  for (int i = 0; i < t.layers; ++i) {
    // Most blocks are like the one before: those of long models are made a few times only.
    const bool experts = t.experts.in_layer(i);
    if (i == 0 || experts != t.experts.in_layer(i - 1) || i == options.recompute_layers) {
      block = make_module(
          {.input = boundary(z), .output = boundary(z), .later = kept_for_later(t, z, options)},
          block_operators(t, z, experts), options_of_layer(options, static_cast<std::size_t>(i)));
    }
    modules.push_back(block);
    modules.back().name = "block" + std::to_string(i);
  }
}

void attach_heads(const Transformer& t, const BuildOptions& options, std::vector<Module>& modules) {
  HeadSpec head = t.head;
  if (!head.kind) {
    head.kind = site_kind(t) == SiteKind::Sequence ? HeadKind::Lm : HeadKind::Linear;
  }
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
                             .recompute_parts = options.recompute_parts,
                             .adapters = options.adapters,
                             .recompute_layers = options.recompute_layers,
                             .framework = options.framework,
                             .sharding = options.sharding};
  return [=](const TokenSlice& slice) {
    Transformer part = shape;
    part.slice = slice;
    return build_transformer(part, kept);
  };
}

}  // namespace

SiteKind site_kind(const Transformer& t) {
  return t.readout == Transformer::Readout::Classes ? SiteKind::Vector : SiteKind::Sequence;
}

ModelGraph build_transformer(const Transformer& shape, const BuildOptions& options) {
  const BlockSizes z = block_sizes(shape, options);
  ModelGraph graph = {.samples_per_micro_batch = options.micro_batch_size,
                      .attention_flops = shape.causal_flops ? "causal" : "full"};
  if (shape.patches.image_size == 0) graph.tokens_per_sample = part_of(shape).length;
  graph.modules.push_back(embedding_module(shape, z, options));
  append_blocks(shape, z, options, graph.modules);
  graph.modules.push_back(readout_module(shape, z, options));
  if (!shape.slice) {
    attach_heads(shape, options, graph.modules);
    if (!shape.bidirectional) graph.slice = slicer(shape, options);
  }
  return graph;
}

}  // namespace interlock
