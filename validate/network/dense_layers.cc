// Executable layers of transformers and fully connected networks.
// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "models/networks/mlp.h"
#include "models/networks/residual_mlp.h"
#include "models/transformer/transformer.h"
#include "validate/network/model_layers.h"

namespace interlock {
namespace {

/// Reports what of `t` has no kernels here, each where it is written.
void refuse_unexecutable(Section& reader, const Transformer& t) {
  using enum Transformer::Attention;
  using enum Transformer::Positions;
  const auto refuse = [&](bool has, std::string_view key, const std::string& message) {
    if (!has) return;
    const auto node = reader.get(key);
    report(reader.diagnostics(), node.value_or(reader.node()), message);
  };
  const std::string not_executable = " not executable; expected ";
  refuse(t.attention != Materialised, "attention",
         "attention in one kernel and retention are" + not_executable +
             "\"attention\": \"materialised\"");
  refuse(
      t.kv_heads != t.attention_heads, "kv_heads",
      "heads that share keys are" + not_executable + "as many \"kv_heads\" as \"attention_heads\"");
  refuse(t.dropout > 0, "dropout", "dropout is" + not_executable + "\"dropout\": 0");
  refuse(t.experts.count > 0, "experts",
         "a mixture of experts is" + not_executable + "no \"experts\"");
  for (const char* key :
       {"head_size", "latent_attention", "qk_norm", "sliding_window", "patches", "bidirectional",
        "readout", "norm_position", "embedding_norm", "parallel_residual", "token_types"}) {
    refuse(reader.get(key).has_value(), key,
           std::string("this is") + not_executable + "no " + in_quotes(key));
  }
  refuse(t.gated_mlp, "gated_mlp", "a gated MLP is" + not_executable + "\"gated_mlp\": false");
  refuse(t.rms_norm, "norm", "an RMS norm is" + not_executable + "\"norm\": \"layernorm\"");
  refuse(t.positions == Rotary, "positions",
         "rotary positions are" + not_executable + "\"positions\": \"learned\" or \"none\"");
  refuse(t.tied_embeddings, "tied_embeddings",
         "tied embeddings, the default, are" + not_executable + "\"tied_embeddings\": false");
}

/// Returns norm, linear, GELU, linear.
std::vector<Layer> mlp_branch(const std::string& name, int width, int hidden, bool bias) {
  return {rowwise_layer(LayerKind::LayerNorm, name + ".norm", width),
          linear_layer(name + ".first", width, hidden, bias),
          rowwise_layer(LayerKind::Gelu, name + ".gelu", hidden),
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

Layer attention_residual(const Transformer& t) {
  const int width = t.hidden_size;
  const Layer attention = {.kind = LayerKind::Attention,
                           .name = "attention.core",
                           .inputs = 3 * width,
                           .outputs = width,
                           .positions = t.sequence_length,
                           .heads = t.attention_heads};
  return {.kind = LayerKind::Residual,
          .name = "attention",
          .inputs = width,
          .outputs = width,
          .branch = {rowwise_layer(LayerKind::LayerNorm, "attention.norm", width),
                     linear_layer("attention.inputs", width, 3 * width, t.bias.qkv), attention,
                     linear_layer("attention.projection", width, width, t.bias.projection)}};
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
  const ReadoutSite site = {
      .kind = SiteKind::Sequence, .width = t.hidden_size, .classes = t.vocab_size};
  const HeadSpec head = executable_head(reader, options, t.head, site, HeadKind::Lm);
  refuse_unexecutable(reader, t);
  reader.finish();
  if (!reader.diagnostics().empty()) return;
  network.samples = SampleKind::Tokens;
  network.rows_per_sample = t.sequence_length;
  network.classes = t.vocab_size;
  const bool learned = t.positions == Transformer::Positions::Learned;
  const Layer embedding = {.kind = LayerKind::Embedding,
                           .name = "table",
                           .inputs = t.vocab_size,
                           .outputs = t.hidden_size,
                           .positions = learned ? t.max_positions : 0};
  network.modules.push_back({"embedding", {embedding}, head_layers(head, site)});
  for (int i = 0; i < t.layers; ++i) {
    network.modules.push_back(
        {"block" + std::to_string(i),
         {attention_residual(t), mlp_residual(t.hidden_size, t.ffn_hidden_size, t.bias.mlp)},
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
