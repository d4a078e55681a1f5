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
BuildOptions without_head(const BuildOptions& options) {
  return {.micro_batch_size = options.micro_batch_size,
          .precision = options.precision,
          .optimizer = options.optimizer,
          .recompute = options.recompute,
          .recompute_parts = options.recompute_parts,
          .adapters = options.adapters,
          .recompute_layers = options.recompute_layers,
          .framework = options.framework,
          .sharding = options.sharding};
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

/// Returns true if tokens choose those that they see, of whole sequences.
bool chooses_tokens(const Transformer& shape) {
  return std::ranges::any_of(
      shape.forms, [](const BlockForm& form) { return form.latents.selection.tokens > 0; });
}

/// Returns true if a shorter document makes some kernel of the decoder shorter.
bool packs(const Transformer& shape) {
  return shape.patches.image_size == 0 && shape.encoder.empty() && !chooses_tokens(shape) &&
         std::ranges::any_of(shape.forms,
                             [](const BlockForm& form) { return form.mixer == Mixer::Fused; });
}

}  // namespace

void append_blocks(const Transformer& t, const BuildOptions& options, const std::string& name,
                   std::size_t before, std::vector<Module>& modules) {
  // Each form's module is made once for the layers that recompute, once for those in 16 bits, and
  // once for the others.
  std::map<std::tuple<int, Recompute, bool>, Module> made;
  const auto layers = static_cast<int>(t.layers.size());
  for (int i = 0; i < layers; ++i) {
    BuildOptions own = options_of_layer(options, before + static_cast<std::size_t>(i));
    own.wide = i < options.wide_layers.first || i >= layers - options.wide_layers.last;
    if (own.wide) {
      own.precision = Precision::Bf16;
      own.optimizer.weights.reset();
    }
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
  append_blocks(shape, options, "block", before, modules);
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
  if (!stream.slice) {
    attach_heads(shape, options, modules);
    if (!stream.bidirectional && shape.encoder.empty() && !chooses_tokens(shape))
      graph.slice = builder_with(shape, options, &ResidualStream::slice);
    if (packs(shape) && stream.documents.empty())
      graph.packed = builder_with(shape, options, &ResidualStream::documents);
  }
  return graph;
}

}  // namespace interlock
