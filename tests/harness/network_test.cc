// Networks and model graphs are built from the same objects: their sizes are held together here.
// SPDX-License-Identifier: Apache-2.0
#include "validate/network/network.h"

#include <doctest/doctest.h>

#include "base/text.h"
#include "tests/models/built.h"

namespace interlock::network_test {
namespace {

/// Rows of a micro-batch that a layer reads or makes, as it goes through the layers.
struct Flow {
  double rows = 1, width = 1;
  double element = 4;  // bytes
  double tensor() const { return rows * width * element; }
};

double kept_by(const std::vector<Layer>& layers, Flow& flow);

/// Returns the tensor bytes of one layer that its backward reads, by the rules of
/// models/layers/operators.h.
double kept_by(const Layer& layer, Flow& flow) {
  const double input = flow.tensor();
  flow.width = layer.outputs;
  switch (layer.kind) {
    case LayerKind::Embedding:
      return flow.rows * 8;
    case LayerKind::Relu:
      return 0;
    case LayerKind::Attention:  // queries, keys, values, and the softmax of the scores or its sums
      return input +
             flow.rows * layer.heads *
                 (layer.fused ? std::max(4.0, flow.element) : layer.positions * flow.element);
    case LayerKind::Convolution: {
      const auto made = [&](int pixels) { return (pixels + layer.stride - 1) / layer.stride; };
      flow.rows *= static_cast<double>(made(layer.rows) * made(layer.columns)) /
                   (static_cast<double>(layer.rows) * layer.columns);
      return input;
    }
    case LayerKind::AveragePool:
      flow.rows /= static_cast<double>(layer.rows) * layer.columns;
      return input;
    case LayerKind::CrossEntropy:
      return flow.rows * layer.outputs * 4;
    case LayerKind::Residual: {
      Flow shortcut = flow;
      shortcut.width = layer.inputs;
      const double before = shortcut.tensor();
      flow.width = layer.inputs;
      const double branch = kept_by(layer.branch, flow);
      // The branch has kept what both read.
      return branch + (layer.shortcut.empty() ? 0 : kept_by(layer.shortcut, shortcut) - before);
    }
    case LayerKind::Coupling: {  // the whole tensor, of which the norm reads a half
      Flow branch = flow;
      branch.width = layer.inputs / 2.0;
      const double half = branch.tensor();
      return input - half + kept_by(layer.branch, branch);
    }
    default:
      return input;
  }
}

double kept_by(const std::vector<Layer>& layers, Flow& flow) {
  double bytes = 0;
  for (const Layer& layer : layers) bytes += kept_by(layer, flow);
  return bytes;
}

std::int64_t count(const std::vector<Parameter>& parameters) {
  std::int64_t numbers = 0;
  for (const Parameter& parameter : parameters) numbers += parameter.size();
  return numbers;
}

NeuralNetwork network_of(const std::string& text, const BuildOptions& options) {
  const JsonValue value = parse_json(text, "test.json");
  Diagnostics diagnostics;
  NeuralNetwork network = build_network({&value, "/model"}, options, diagnostics);
  for (const std::string& message : diagnostics.messages()) FAIL(message);
  return network;
}

void check_sizes(const std::string& text, const BuildOptions& options) {
  INFO(text, ", ", options.micro_batch_size, " samples");
  const ModelGraph graph = built(text, options);
  const NeuralNetwork network = network_of(text, options);
  CHECK(network.name == graph.name);
  CHECK(network.samples_per_micro_batch == options.micro_batch_size);
  REQUIRE(network.modules.size() == graph.modules.size());
  Flow flow = {.rows = static_cast<double>(options.micro_batch_size) * network.rows_per_sample,
               .width = static_cast<double>(network.features),
               .element = element_bytes(options.precision)};
  for (std::size_t i = 0; i < graph.modules.size(); ++i) {
    const NetworkModule& module = network.modules[i];
    const Module& priced = graph.modules[i];
    INFO(priced.name);
    CHECK(module.name == priced.name);
    CHECK(count(parameters_of(module.name, module.layers)) == priced.parameters);
    CHECK(count(parameters_of(module.name, module.head)) == priced.head.parameters);
    CHECK(kept_by(module.layers, flow) == priced.stash.value());
    if (i + 1 < graph.modules.size()) CHECK(flow.tensor() == priced.output.value());
  }
}

void check_in_all(const std::string& text) {
  for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
    for (const int samples : {1, 3}) {
      check_sizes(text, {.micro_batch_size = samples, .precision = precision});
    }
  }
}

const std::vector<std::string> kHeads = {R"("linear")", R"("mlp")",
                                         R"({"kind": "mlp", "hidden_size": 5})"};

/// `model` with each of `heads`, and without one.
void check_with_heads(const std::string& model, const std::vector<std::string>& heads) {
  check_in_all(model + "}");
  for (const std::string& head : heads) check_in_all(model + R"(, "head": )" + head + "}");
}

TEST_CASE("layers of MLPs have the parameters, outputs and stash of their modules") {
  check_with_heads(R"({"kind": "mlp", "input_size": 5, "hidden_sizes": [7, 11, 4], "classes": 3)",
                   kHeads);
  check_with_heads(R"({"kind": "residual-mlp", "input_size": 5, "layers": 3, "hidden_size": 6,
                       "ffn_hidden_size": 7, "classes": 3, "name": "one")",
                   kHeads);
  check_with_heads(R"({"kind": "residual-mlp", "input_size": 5, "layers": 3, "hidden_size": 6,
                       "ffn_hidden_size": 7, "classes": 3, "reversible": true)",
                   kHeads);
}

TEST_CASE("layers of transformers have the parameters, outputs and stash of their modules") {
  std::vector<std::string> heads = kHeads;
  heads.emplace_back(R"("lm")");
  check_with_heads(R"({"kind": "transformer", "layers": 2, "hidden_size": 8,
        "attention": "materialised", "attention_heads": 2,
                       "vocab_size": 13, "sequence_length": 6, "tied_embeddings": false)",
                   heads);
  check_in_all(R"({"kind": "transformer", "layers": 1, "hidden_size": 12,
        "attention": "materialised", "attention_heads": 3,
                   "vocab_size": 5, "sequence_length": 4, "tied_embeddings": false, "bias": false,
                   "ffn_hidden_size": 7, "positions": "none"})");
  check_with_heads(R"({"kind": "transformer", "layers": 2, "hidden_size": 8,
                       "attention": "fused", "attention_heads": 2,
                       "vocab_size": 13, "sequence_length": 6, "tied_embeddings": false)",
                   heads);
  check_in_all(R"({"kind": "transformer", "layers": 1, "hidden_size": 4,
        "attention": "materialised", "attention_heads": 1,
                   "vocab_size": 5, "sequence_length": 4, "tied_embeddings": false,
                   "max_positions": 9})");
}

TEST_CASE("layers of ResNets have the parameters, outputs and stash of their modules") {
  std::vector<std::string> heads = kHeads;
  heads.emplace_back(R"("convolution")");
  check_with_heads(R"({"kind": "resnet", "block": "basic", "blocks": [2, 1], "image_size": 8,
                       "base_width": 4)",
                   heads);
  check_in_all(R"({"kind": "resnet", "block": "basic", "blocks": [1, 1, 2], "image_size": 9,
                   "base_width": 3, "classes": 7})");
}

TEST_CASE("a strategy's head stands on every module but the last") {
  const JsonValue head = parse_json(R"({"kind": "mlp", "hidden_size": 2})", "head.json");
  BuildOptions options;
  options.head = JsonNode{&head, "/head"};
  const NeuralNetwork network =
      network_of(R"({"kind": "mlp", "input_size": 5, "hidden_sizes": [4], "classes": 3})", options);
  CHECK(count(parameters_of("", network.modules[0].head)) == (4 * 2 + 2) + (2 * 3 + 3));
  CHECK(network.modules[1].head.empty());
}

TEST_CASE("parameters are numbered through the network, with unused heads") {
  const NeuralNetwork network =
      network_of(R"({"kind": "mlp", "input_size": 5, "hidden_sizes": [4, 4], "classes": 3})", {});
  const auto parameters = parameters_of("layer0", network.modules[0].layers);
  REQUIRE(parameters.size() == 2);
  CHECK(parameters[0].name == "layer0.linear.weight");
  CHECK(parameters[0].decays);
  CHECK(parameters[1].name == "layer0.linear.bias");
  CHECK_FALSE(parameters[1].decays);
  CHECK(first_parameter(network, 0, false) == 0);
  CHECK(first_parameter(network, 0, true) == 2);
  CHECK(first_parameter(network, 1, false) == 4);
  CHECK(first_parameter(network, 2, false) == 8);
}

TEST_CASE("first values are normal with the deviation that a parameter asks for") {
  const Parameter wide = {.name = "w", .rows = 100, .columns = 200, .deviation = 0.5};
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < wide.size(); ++i) {
    const double value = first_value(wide, 7, 3, i);
    sum += value;
    squares += value * value;
  }
  const double n = static_cast<double>(wide.size());
  // 20,000 values: the mean is within 4 x 0.5 / sqrt(n) = 0.014 of 0, the variance within
  // 4 x 0.25 sqrt(2 / n) = 0.01 of 0.25, but for one time in ten thousand.
  CHECK(std::abs(sum / n) < 0.0142);
  CHECK(std::abs(squares / n - 0.25) < 0.01);
  CHECK(first_value(wide, 7, 3, 5) == first_value(wide, 7, 3, 5));
  CHECK(first_value(wide, 7, 3, 5) != first_value(wide, 8, 3, 5));
  CHECK(first_value(wide, 7, 3, 5) != first_value(wide, 7, 4, 5));
  CHECK(first_value({.start = Start::Ones}, 7, 3, 5) == 1);
  CHECK(first_value({.start = Start::Zeros}, 7, 3, 5) == 0);
}

void check_refused(const std::string& model, const std::string& expected) {
  const JsonValue value = parse_json(model, "m.json");
  Diagnostics diagnostics;
  const NeuralNetwork network = build_network({&value, "/model"}, {}, diagnostics);
  INFO(model);
  CHECK(network.modules.empty());
  REQUIRE_FALSE(diagnostics.messages().empty());
  INFO(diagnostics.messages().front());
  CHECK(diagnostics.messages().size() == 1);
  CHECK(diagnostics.messages().front().find(expected) != std::string::npos);
}

TEST_CASE("what has no kernels is refused with what to write instead") {
  const std::string gpt = R"({"kind": "transformer", "layers": 1, "hidden_size": 8,
    "attention_heads": 4, "vocab_size": 5, "sequence_length": 4, )";
  check_refused(gpt + R"("attention": "materialised"})", R"("tied_embeddings": false)");
  check_refused(gpt + R"("tied_embeddings": false, "attention": "retention"})",
                R"("attention": "fused" or "materialised")");
  const std::string untied = gpt + R"("tied_embeddings": false, "attention": "materialised", )";
  check_refused(untied + R"("kv_heads": 2})", R"("kv_heads")");
  check_refused(untied + R"("dropout": 0.1})", R"("dropout": 0)");
  check_refused(untied + R"("experts": 2})", R"(no "experts")");
  check_refused(untied + R"("gated_mlp": true})", R"("gated_mlp": false)");
  check_refused(untied + R"("head_size": 4})", R"(no "head_size")");
  check_refused(untied + R"("layer_pattern": [{}]})", R"(no "layer_pattern")");
  check_refused(untied + R"("multi_token_prediction": {}})", R"(no "multi_token_prediction")");
  check_refused(untied + R"("ffn": "dense"})", R"(no "ffn")");
  check_refused(untied + R"("attention_gate": true})", R"(no "attention_gate")");
  check_refused(untied + R"("parallel_residual": true})", R"(no "parallel_residual")");
  check_refused(untied + R"("norm_position": "post"})", R"(no "norm_position")");
  check_refused(untied + R"("norm": "rmsnorm"})", R"("norm": "layernorm")");
  check_refused(untied + R"("positions": "rotary"})", R"("positions": "learned" or "none")");
  check_refused(untied + R"("head": "later-layers"})", R"("linear", "mlp", "lm")");
  check_refused(untied + R"("head": {"kind": "lm", "weights": "shared-frozen"}})",
                R"("weights": "private")");
  check_refused(R"({"kind": "resnet", "block": "bottleneck", "blocks": [1]})",
                R"("block": "basic")");
  check_refused(R"({"kind": "resnet", "block": "basic", "blocks": [1], "stem": "imagenet"})",
                R"("stem": "cifar")");
  check_refused(R"({"kind": "profile", "modules": []})", "transformer, resnet, mlp or");
  check_refused(R"("vgg-16")", R"("vgg" is not executable)");
}

}  // namespace
}  // namespace interlock::network_test
