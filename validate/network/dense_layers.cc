// Executable layers of transformers and fully connected networks.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "models/networks/mlp.h"
#include "models/networks/residual_mlp.h"
#include "models/transformer/transformer.h"
#include "validate/network/model_layers.h"

namespace interlock {
namespace {

/// Keys of a transformer that kernels here run, with the values that refuse_unexecutable lets pass.
constexpr std::string_view kExecutable[] = {"kind",
                                            "name",
                                            "source",
                                            "notes",
                                            "layers",
                                            "hidden_size",
                                            "vocab_size",
                                            "kv_heads",
                                            "attention_heads",
                                            "sequence_length",
                                            "ffn_hidden_size",
                                            "gated_mlp",
                                            "norm",
                                            "bias",
                                            "qkv_bias",
                                            "projection_bias",
                                            "mlp_bias",
                                            "positions",
                                            "max_positions",
                                            "tied_embeddings",
                                            "dropout",
                                            "attention",
                                            "experts",
                                            "head",
                                            "attention_flops",
                                            "rotary_share"};

/// Reports each key of the model that has no kernels here, and each value, where it is written.
void refuse_unexecutable(Section& reader, const BlockForm& b, bool tied) {
  const auto refuse = [&](bool has, std::string_view key, const std::string& message) {
    if (!has) return;
    const JsonNode& node = reader.node();
    report(reader.diagnostics(), node.value->find(key) ? node.child(key) : node, message);
  };
  const std::string not_executable = " not executable; expected ";
  refuse(b.mixer != Mixer::Materialised && b.mixer != Mixer::Fused, "attention",
         "what stands in for attention is" + not_executable +
             "\"attention\": \"fused\" or \"materialised\"");
  refuse(
      b.kv_heads != b.attention_heads, "kv_heads",
      "heads that share keys are" + not_executable + "as many \"kv_heads\" as \"attention_heads\"");
  refuse(b.stream.dropout > 0, "dropout", "dropout is" + not_executable + "\"dropout\": 0");
  refuse(b.experts.count > 0, "experts",
         "a mixture of experts is" + not_executable + "no \"experts\"");
  for (const auto& [key, value] : reader.node().value->members) {
    if (std::ranges::find(kExecutable, key) != std::end(kExecutable)) continue;
    refuse(true, key, "this is" + not_executable + "no " + in_quotes(key));
  }
  refuse(b.gated_mlp, "gated_mlp", "a gated MLP is" + not_executable + "\"gated_mlp\": false");
  refuse(b.stream.rms_norm, "norm", "an RMS norm is" + not_executable + "\"norm\": \"layernorm\"");
  refuse(b.rotary, "positions",
         "rotary positions are" + not_executable + "\"positions\": \"learned\" or \"none\"");
  refuse(tied, "tied_embeddings",
         "tied embeddings, the default, are" + not_executable + "\"tied_embeddings\": false");
}

/// Returns `layer`, whose output `part` makes again.
Layer made_by(LayerPart part, Layer layer) {
  layer.part = part;
  return layer;
}

/// Returns norm, linear, GELU, linear.
std::vector<Layer> mlp_branch(const std::string& name, int width, int hidden, bool bias) {
  return {made_by(LayerPart::Norms, rowwise_layer(LayerKind::LayerNorm, name + ".norm", width)),
          made_by(LayerPart::Mlp, linear_layer(name + ".first", width, hidden, bias)),
          made_by(LayerPart::Mlp, rowwise_layer(LayerKind::Gelu, name + ".gelu", hidden)),
          linear_layer(name + ".second", hidden, width, bias)};
}

/// Returns a branch whose input is added to its output.
Layer mlp_residual(int width, int hidden, bool bias) {
  return {.kind = LayerKind::Residual,
          .name = "mlp",
          .inputs = width,
          .outputs = width,
          .branch = mlp_branch("mlp", width, hidden, bias)};
}

/// Returns the couplings of y1 = x1 + F(x2), then y2 = x2 + G(y1).
std::vector<Layer> couplings(const ResidualMlp& mlp) {
  std::vector<Layer> layers;
  for (const bool second : {false, true}) {
    const std::string name = second ? "g" : "f";
    layers.push_back({.kind = LayerKind::Coupling,
                      .name = name,
                      .inputs = mlp.hidden_size,
                      .outputs = mlp.hidden_size,
                      .branch = mlp_branch(name, mlp.hidden_size / 2, mlp.ffn_hidden_size, true),
                      .to_second = second});
  }
  return layers;
}

Layer attention_residual(const BlockForm& b) {
  const int width = b.stream.hidden_size;
  const Layer attention = {.kind = LayerKind::Attention,
                           .name = "attention.core",
                           .inputs = 3 * width,
                           .outputs = width,
                           .positions = b.stream.sequence_length,
                           .heads = b.attention_heads,
                           .fused = b.mixer == Mixer::Fused,
                           .part = LayerPart::CoreAttention};
  return {.kind = LayerKind::Residual,
          .name = "attention",
          .inputs = width,
          .outputs = width,
          .branch = {made_by(LayerPart::Norms,
                             rowwise_layer(LayerKind::LayerNorm, "attention.norm", width)),
                     linear_layer("attention.inputs", width, 3 * width, b.bias.qkv), attention,
                     linear_layer("attention.projection", width, width, b.bias.projection)}};
}

std::vector<Layer> normed_readout(const ReadoutSite& site, bool bias) {
  std::vector<Layer> layers = {rowwise_layer(LayerKind::LayerNorm, "norm", site.width)};
  for (const Layer& layer : readout_layers(site, bias)) layers.push_back(layer);
  return layers;
}

}  // namespace

void build_transformer_network(Section& reader, const BuildOptions& options,
                               NeuralNetwork& network) {
  const Transformer t = read_transformer(reader);
  const int width = t.stream.hidden_size;
  const ReadoutSite site = {.kind = SiteKind::Sequence, .width = width, .classes = t.vocab_size};
  const HeadSpec head = executable_head(reader, options, t.head, site, HeadKind::Lm);
  if (!t.forms.empty()) refuse_unexecutable(reader, t.forms.front(), t.tied_embeddings);
  reader.finish();
  if (!reader.diagnostics().empty()) return;
  const BlockForm& block = t.forms.front();
  network.samples = SampleKind::Tokens;
  network.rows_per_sample = t.stream.sequence_length;
  network.classes = t.vocab_size;
  const Layer embedding = {.kind = LayerKind::Embedding,
                           .name = "table",
                           .inputs = t.vocab_size,
                           .outputs = width,
                           .positions = t.max_positions};
  network.modules.push_back({"embedding", {embedding}, head_layers(head, site)});
  for (std::size_t i = 0; i < t.layers.size(); ++i) {
    network.modules.push_back(
        {"block" + std::to_string(i),
         {attention_residual(block), mlp_residual(width, block.ffn_hidden_size, block.bias.mlp)},
         head_layers(head, site)});
  }
  network.modules.push_back({"readout", normed_readout(site, false), {}});
}

void build_mlp_network(Section& reader, const BuildOptions& options, NeuralNetwork& network) {
  const Mlp mlp = read_mlp(reader);
  ReadoutSite site = {.width = mlp.input_size, .classes = mlp.classes};
  const HeadSpec head = executable_head(reader, options, mlp.head, site, HeadKind::Linear);
  reader.finish();
  if (!reader.diagnostics().empty()) return;
  network.features = mlp.input_size;
  network.classes = mlp.classes;
  for (const int width : mlp.hidden_sizes) {
    const std::vector<Layer> layers = {linear_layer("linear", site.width, width),
                                       rowwise_layer(LayerKind::Relu, "relu", width)};
    site.width = width;
    network.modules.push_back(
        {"layer" + std::to_string(network.modules.size()), layers, head_layers(head, site)});
  }
  network.modules.push_back({"readout", readout_layers(site, true), {}});
}

void build_residual_mlp_network(Section& reader, const BuildOptions& options,
                                NeuralNetwork& network) {
  const ResidualMlp mlp = read_residual_mlp(reader);
  const ReadoutSite site = {.width = mlp.hidden_size, .classes = mlp.classes};
  const HeadSpec head = executable_head(reader, options, mlp.head, site, HeadKind::Linear);
  reader.finish();
  if (!reader.diagnostics().empty()) return;
  network.features = mlp.input_size;
  network.classes = mlp.classes;
  network.modules.push_back({"input",
                             {linear_layer("linear", mlp.input_size, mlp.hidden_size)},
                             head_layers(head, site)});
  for (int i = 0; i < mlp.layers; ++i) {
    std::vector<Layer> layers = {mlp_residual(mlp.hidden_size, mlp.ffn_hidden_size, true)};
    if (mlp.reversible) layers = couplings(mlp);
    network.modules.push_back({"block" + std::to_string(i), layers, head_layers(head, site)});
  }
  network.modules.push_back({"readout", normed_readout(site, true), {}});
}

}  // namespace interlock
