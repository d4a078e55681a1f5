// Transformer: chains its modules.
// SPDX-License-Identifier: Apache-2.0
#include "models/transformer/transformer.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "models/transformer/block.h"

namespace interlock {
namespace {

void attach_heads(const Transformer& t, const BuildOptions& options, std::vector<Module>& modules) {
  HeadSpec head = t.head;
  if (!head.kind) {
    head.kind = site_kind(t) == SiteKind::Sequence ? HeadKind::Lm : HeadKind::Linear;
  }
  if (head.kind == HeadKind::LaterLayers) return attach_later_layers(head, options, modules);
  const std::size_t own = modules.size() - t.layers.size() - 2;  // the first that is no encoder's
  if (own > 0) {
    const Transformer& encoder = t.encoder.front();
    HeadSite site = site_of(t, options);
    site.samples *= encoder.images;
    site.positions = encoder.stream.sequence_length;
    site.width = encoder.stream.hidden_size;
    site.norm_parameters = norm_parameters(encoder.stream);
    const Head early = make_head(head, site, options);
    for (std::size_t i = 0; i + 1 < own; ++i) modules[i].head = early;
  }
  const Head made = make_head(head, site_of(t, options), options);
  for (std::size_t i = own > 0 ? own - 1 : 0; i + 1 < modules.size(); ++i) modules[i].head = made;
}

/// Returns `options` without the head, whose document need not outlive the graph.
BuildOptions without_head(BuildOptions options) {
  options.head.reset();
  options.left_out.clear();
  return options;
}

/// Returns a function that builds `shape` with another value of `member` in all of its streams.
template <class Member>
auto builder_with(const Transformer& shape, const BuildOptions& options,
                  Member ResidualStream::*member) {
  // Shared, as graphs are copied and few of the copies are ever cut.
  return [made = std::make_shared<const Transformer>(shape),
          kept = std::make_shared<const BuildOptions>(without_head(options)),
          member](const auto& value) {
    Transformer other = *made;
    other.stream.*member = value;
    for (BlockForm& form : other.forms) form.stream.*member = value;
    return build_transformer(other, *kept);
  };
}

/// Returns true if tokens choose those that they see, or see entries, of whole sequences.
bool chooses_tokens(const Transformer& shape) {
  return std::ranges::any_of(shape.forms, [](const BlockForm& form) {
    return form.latents.selection.tokens > 0 || form.compression.query_rank > 0;
  });
}

/// Returns true if a shorter document makes some kernel of the decoder shorter.
bool packs(const Transformer& shape) {
  return shape.patches.image_size == 0 && shape.encoder.empty() && !chooses_tokens(shape) &&
         std::ranges::any_of(shape.forms,
                             [](const BlockForm& form) { return form.mixer == Mixer::Fused; });
}

/// Returns the options of layer `i`, with `before` others that may recompute.
BuildOptions options_of_block(const Transformer& t, const BuildOptions& options, std::size_t before,
                              int i) {
  BuildOptions own = options_of_layer(options, before + static_cast<std::size_t>(i));
  const auto layers = static_cast<int>(t.layers.size());
  own.wide = i < options.wide_layers.first || i >= layers - options.wide_layers.last;
  if (own.wide) {
    own.precision = Precision::Bf16;
    own.optimizer.weights.reset();
  }
  return own;
}

/// A block around its attention, which has no weights: the residual goes past it through the same
/// modules, and so do the weights of products that are done there. Bytes: those that each reads.
/// Example: 8,192 tokens of 4,096 numbers in bf16, all of one device: `before` reads 64 MiB,
/// attention 4 x 64 MiB, or, with its products, 2 x 64 MiB and 96 MiB of weights; `behind` 2 x 64.
struct PartedBlock {
  std::vector<Operator> before, products, attention, behind;  // products: those done there
  Bytes input, attended, made;
  Bytes weights;  // of `products`, which come with what attention reads and stay until it goes back
};
/// Returns whether attention of a block has no weights, and reads and makes nothing else.
bool may_part(const BlockForm& b) {
  return attends(b.mixer) && !b.parallel_residual && !b.gate && !b.sinks && b.source_tokens == 0 &&
         b.latents.selection.tokens == 0 && b.compression.query_rank == 0 &&
         b.stream.connections.streams == 1;
}

/// Returns the weights of a product that is done elsewhere, whose gradient is added to those kept.
Operator kept_weights(const Operator& op, const BuildOptions& options) {
  const Framework& framework = options.framework;
  const double element = element_bytes(options.precision);
  const double kept = framework.fp32_gradients ? 4 : element;
  const double passes = framework.gradient_passes > 0 ? 0 : element + 2 * kept;  // else: all alike
  Operator weights = {.parameters = op.parameters, .matrices = op.matrices};
  if (passes > 0) {
    weights.weight_gradient = {.bytes = Bytes(static_cast<double>(op.parameters) * passes)};
  }
  return weights;
}

/// REQUIRES: may_part().
PartedBlock parted_block(const BlockForm& b, const StreamSizes& z, const BuildOptions& options) {
  const auto attends = [](const Operator& op) { return op.parts.has(LayerPart::CoreAttention); };
  const auto has_matrix = [](const Operator& op) { return !op.matrices.empty(); };
  std::vector<Operator> all = block_operators(b, z);
  const auto first = std::ranges::find_if(all, attends);
  const auto last = std::find_if_not(first, all.end(), attends);
  const bool sends =
      options.parted == PartedAttention::WithProjections && options.adapters.rank == 0;
  const auto product = sends ? std::find_if(all.begin(), first, has_matrix) : first;
  PartedBlock block = {.before = {all.begin(), product},
                       .products = {product, first},
                       .attention = {first, last},
                       .behind = {last, all.end()},
                       .input = boundary(z),
                       .made = boundary(z) + attention_output(b, z)};
  // Without a norm before it, attention begins with the residual itself.
  block.attended = boundary(z) * (block.before.empty() ? 1 : 2);
  if (!sends) block.attended = boundary(z) + attention_input(b, z);
  if (sends && !block.before.empty()) {
    // The rank that keeps the norm's output cannot make it again.
    block.before.back().parts = block.products.front().remade = LayerParts();
  }
  for (const Operator& op : block.products) {
    block.weights += Bytes(static_cast<double>(op.parameters) * z.element);
    if (op.parameters > 0) block.before.push_back(kept_weights(op, options));
  }
  block.attended += block.weights;
  for (Operator& op : block.attention) {
    // The projection that keeps its output is elsewhere.
    op.inner_stash += std::exchange(op.output_read, Bytes(0));
  }
  for (auto* part : {&block.products, &block.attention, &block.behind}) {
    if (!part->empty()) part->front().reads_module_input = true;
  }
  return block;
}

/// Returns attention of a parted block as a module. A recomputation leaves attention alone, and
/// makes what it reads again, if that is made there.
Module attention_module(const BlockForm& b, const PartedBlock& block, const BuildOptions& options) {
  const StreamSizes z = stream_sizes(b.stream, options);
  const bool full = options.recompute == Recompute::Full;
  Module core = make_module({.input = block.attended,
                             .output = block.made,
                             .recomputable = !full && options.recompute != Recompute::Alternate,
                             .layers = true},
                            block.attention, options);
  if (block.products.empty()) return core;
  BuildOptions own = options;
  own.framework.gradient_passes = 0;  // their sums are made where the weights are
  own.framework.recomputes_output = true;
  Module module = make_module({.input = boundary(z), .output = block.made}, block.products, own);
  module.stash += block.weights;
  module.parameters = 0;
  module.matrices.clear();
  module.update.clear();
  if (full) {
    core.remade = attention_input(b, z);
    core.stash -= core.remade;
    core.workspace += core.remade;
  }
  append_module(module, core);
  return module;
}

/// Returns true if attention of the decoder becomes modules of its own.
bool parts_attention(const Transformer& t, const BuildOptions& options) {
  return options.parted != PartedAttention::None && t.encoder.empty() &&
         std::ranges::all_of(t.forms, may_part);
}

/// Has a readout go forward when it goes back, so that only its input waits for that.
void read_late(Module& readout, Bytes input) {
  readout.backward_input.insert(readout.backward_input.begin(), readout.forward.begin(),
                                readout.forward.end());
  readout.forward.clear();
  append_exchanges(readout.backward_input_exchanges, readout.forward_exchanges);
  readout.forward_exchanges.clear();
  readout.workspace += readout.stash - input;
  readout.stash = input;
}

/// Adds the blocks of a decoder with attention as modules of its own. What follows it in one layer
/// and comes before it in the next are one module, whose input a full recomputation keeps.
void append_parted_blocks(const Transformer& t, const BuildOptions& options,
                          std::vector<Module>& modules) {
  const auto layers = static_cast<int>(t.layers.size());
  const StreamSizes z = stream_sizes(t.stream, options);
  const auto add = [&](ModuleFrame frame, const std::vector<Operator>& operators,
                       const BuildOptions& own) {
    modules.push_back(make_module(frame, operators, own));
    if (own.wide) widen(modules.back());
  };
  PartedBlock behind;  // of the layer before
  BuildOptions of_behind;
  for (int i = 0; i < layers; ++i) {
    const BuildOptions own = options_of_block(t, options, 0, i);
    const BlockForm& form = t.block_of(i);
    PartedBlock block = parted_block(form, z, own);
    const std::string name = "block" + std::to_string(i);
    std::vector<Operator> joined = std::move(block.before);
    const bool joins = i > 0 && of_behind == own;
    if (joins) joined.insert(joined.begin(), behind.behind.begin(), behind.behind.end());
    if (i > 0 && !joins) {
      add({.name = "block" + std::to_string(i - 1) + ".behind",
           .input = behind.made,
           .output = block.input},
          behind.behind, of_behind);
    }
    add({.name = joins ? "block" + std::to_string(i - 1) + ".behind, " + name + ".before"
                       : name + ".before",
         .input = joins ? behind.made : block.input,
         .output = block.attended},
        joined, own);
    modules.push_back(attention_module(form, block, own));
    if (own.wide) widen(modules.back());
    modules.back().name = name + ".attention";
    modules.back().attends = true;
    behind = std::move(block);
    of_behind = own;
  }
  add({.name = "block" + std::to_string(layers - 1) + ".behind",
       .input = behind.made,
       .output = behind.input},
      behind.behind, of_behind);
}

}  // namespace

void append_blocks(const Transformer& t, const BuildOptions& options, const std::string& name,
                   std::size_t before, std::vector<Module>& modules) {
  // Each form's module is made once for the layers that recompute, once for those in 16 bits, and
  // once for the others.
  std::map<std::tuple<int, Recompute, bool>, Module> made;
  const auto layers = static_cast<int>(t.layers.size());
  for (int i = 0; i < layers; ++i) {
    const BuildOptions own = options_of_block(t, options, before, i);
    const int form = t.layers[static_cast<std::size_t>(i)];
    const auto [module, added] = made.insert({{form, own.recompute, own.wide}, Module()});
    if (added) module->second = block_module(t.block_of(i), own);
    modules.push_back(module->second);
    modules.back().name = name + std::to_string(i);
  }
}

SiteKind site_kind(const Transformer& t) {
  return t.readout == Transformer::Readout::Classes ? SiteKind::Vector : SiteKind::Sequence;
}

ModelGraph build_transformer(const Transformer& shape, const BuildOptions& options) {
  const ResidualStream& stream = shape.stream;
  const StreamSizes z = stream_sizes(stream, options);
  ModelGraph graph = {.samples_per_micro_batch = options.micro_batch_size,
                      .attention_flops = chooses_tokens(shape) ? "chosen"
                                         : stream.causal_flops ? "causal"
                                                               : "full"};
  for (const BlockForm& form : shape.forms) {
    if (form.ffn == FeedForward::Experts)
      graph.experts = std::max(graph.experts, form.experts.count);
  }
  if (shape.patches.image_size == 0) graph.tokens_per_sample = part_of(stream).length;
  if (shape.reads_source()) {
    *graph.tokens_per_sample += shape.encoder.front().stream.sequence_length;
  }
  std::vector<Module>& modules = graph.modules.edit();
  std::size_t before = 0;
  if (!shape.encoder.empty()) {
    append_encoder(shape, options, modules);
    before = shape.encoder.front().layers.size();
  }
  const auto embedding = static_cast<int>(modules.size());
  modules.push_back(embedding_module(shape, z, options));
  const bool parts = parts_attention(shape, options);
  parts ? append_parted_blocks(shape, options, modules)
        : append_blocks(shape, options, "block", before, modules);
  if (shape.reads_source()) {
    const Bytes source = boundary(encoder_sizes(shape.encoder.front(), options));
    for (std::size_t i = 1; i < shape.layers.size(); ++i) {
      modules[static_cast<std::size_t>(embedding) + i].output += source;
    }
  } else if (!shape.encoder.empty()) {
    append_deepstack(shape, options, modules);
  }
  modules.push_back(readout_module(shape, z, options));
  modules.back().tied_to = embedding;
  if (shape.later_tokens > 0) append_later_tokens(shape, z, options, modules.back());
  if (parts) read_late(modules.back(), boundary(z));
  if (!stream.slice) {
    if (!parts) attach_heads(shape, options, modules);
    if (!stream.bidirectional && shape.encoder.empty() && !chooses_tokens(shape))
      graph.slice = builder_with(shape, options, &ResidualStream::slice);
    if (packs(shape) && stream.documents.empty())
      graph.packed = builder_with(shape, options, &ResidualStream::documents);
  }
  return graph;
}

}  // namespace interlock
