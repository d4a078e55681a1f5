// NeuralNetwork: executable layers from model objects, and their parameters.
// SPDX-License-Identifier: Apache-2.0
#include "validate/network/network.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/random.h"
#include "base/text.h"
#include "models/build_model.h"
#include "models/model_file.h"
#include "validate/network/model_layers.h"

namespace interlock {
namespace {

/// A kind of model that can be executed.
struct ExecutableKind {
  std::string name;
  void (*build)(Section&, const BuildOptions&, NeuralNetwork&);
};

const std::vector<ExecutableKind>& executable_kinds() {
  static const std::vector<ExecutableKind> all = {{"transformer", build_transformer_network},
                                                  {"resnet", build_resnet_network},
                                                  {"mlp", build_mlp_network},
                                                  {"residual-mlp", build_residual_mlp_network}};
  return all;
}

bool is_divided(const Sharding& s) {
  return s.tensor > 1 || s.context > 1 || s.expert > 1 || s.split_brain > 1 || s.image_parts() > 1;
}

void build_object(const ModelObject& model, const BuildOptions& options, NeuralNetwork& network,
                  Diagnostics& diagnostics) {
  std::vector<std::string> names;
  for (const ExecutableKind& kind : executable_kinds()) names.push_back(kind.name);
  const auto kind = ObjectReader(model.node, diagnostics).require("kind", join_choices(names));
  if (!kind) return;
  const ExecutableKind* found = nullptr;
  for (const ExecutableKind& one : executable_kinds()) {
    if (one.name == kind->value->text) found = &one;
  }
  if (found == nullptr) {
    report(diagnostics, *kind,
           described(*kind->value) + " is not executable; expected " + join_choices(names));
    return;
  }
  Section reader(contract_object(model_contract(), "model." + found->name), model.node,
                 diagnostics);
  reader.get("kind");
  network.name = reader.text("name", model.name.empty() ? found->name : model.name);
  reader.text("source", "");
  reader.get("notes");  // told by who builds the model
  found->build(reader, options, network);
}

/// Adds the weight (rows, columns) of a layer, and its bias if it has one.
void add_product(const std::string& name, const Layer& layer, std::int64_t rows, double deviation,
                 std::vector<Parameter>& parameters) {
  parameters.push_back(
      {.name = name + ".weight", .rows = rows, .columns = layer.outputs, .deviation = deviation});
  if (!layer.bias) return;
  parameters.push_back(
      {.name = name + ".bias", .columns = layer.outputs, .start = Start::Zeros, .decays = false});
}

void add_norm(const std::string& name, int width, std::vector<Parameter>& parameters) {
  parameters.push_back(
      {.name = name + ".gain", .columns = width, .start = Start::Ones, .decays = false});
  parameters.push_back(
      {.name = name + ".shift", .columns = width, .start = Start::Zeros, .decays = false});
}

/// Keeps the variance of what goes through: He et al., arXiv 1502.01852, in front of a Relu, half
/// of it elsewhere.
double deviation_of(double inputs, bool rectified) {
  return std::sqrt((rectified ? 2 : 1) / inputs);
}

void append_parameters(const std::string& module, const std::vector<Layer>& layers,
                       std::vector<Parameter>& parameters) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = layers[i];
    const std::string name = module + "." + layer.name;
    const bool rectified = i + 1 < layers.size() && layers[i + 1].kind == LayerKind::Relu;
    switch (layer.kind) {
      case LayerKind::Scale:
        parameters.push_back({.name = name + ".weight", .columns = layer.outputs});
        break;
      case LayerKind::Embedding:
        parameters.push_back(
            {.name = name + ".weight", .rows = layer.inputs, .columns = layer.outputs});
        if (layer.positions == 0) break;
        parameters.push_back(
            {.name = name + ".positions", .rows = layer.positions, .columns = layer.outputs});
        break;
      case LayerKind::Linear:
        add_product(name, layer, layer.inputs, deviation_of(layer.inputs, rectified), parameters);
        break;
      case LayerKind::Convolution: {
        const std::int64_t read = std::int64_t{layer.kernel} * layer.kernel * layer.inputs;
        add_product(name, layer, read, deviation_of(static_cast<double>(read), true), parameters);
        break;
      }
      case LayerKind::LayerNorm:
      case LayerKind::BatchNorm:
        add_norm(name, layer.outputs, parameters);
        break;
      case LayerKind::Residual:
        append_parameters(module, layer.branch, parameters);
        append_parameters(module, layer.shortcut, parameters);
        break;
      case LayerKind::Coupling:
        append_parameters(module, layer.branch, parameters);
        break;
      case LayerKind::Gelu:
      case LayerKind::Relu:
      case LayerKind::Attention:
      case LayerKind::AveragePool:
      case LayerKind::Goodness:
      case LayerKind::CrossEntropy:
        break;
    }
  }
}

}  // namespace

std::vector<Parameter> parameters_of(const std::string& module, const std::vector<Layer>& layers) {
  std::vector<Parameter> parameters;
  append_parameters(module, layers, parameters);
  return parameters;
}

bool has_couplings(const NeuralNetwork& network) {
  return std::any_of(network.modules.begin(), network.modules.end(), [](const NetworkModule& m) {
    return !m.layers.empty() && m.layers.front().kind == LayerKind::Coupling;
  });
}

int first_parameter(const NeuralNetwork& network, int module, bool head) {
  std::size_t before = 0;
  for (int m = 0; m <= module; ++m) {
    const NetworkModule& one = network.modules[static_cast<std::size_t>(m)];
    if (m < module || head) before += parameters_of(one.name, one.layers).size();
    if (m < module) before += parameters_of(one.name, one.head).size();
  }
  return static_cast<int>(before);
}

double first_value(const Parameter& parameter, std::uint64_t seed, int number, std::int64_t index) {
  if (parameter.start == Start::Zeros) return 0;
  if (parameter.start == Start::Ones) return 1;
  // A stream for each element; two of its numbers make a normal one (Box and Muller, 1958).
  const auto tensor = static_cast<std::uint64_t>(number);
  Random random(mix64(seed) ^ mix64(tensor + 1), static_cast<std::uint64_t>(index));
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  const double angle = 2 * std::numbers::pi * random.uniform();
  return parameter.deviation * radius * std::cos(angle);
}

NeuralNetwork build_network(const JsonNode& model, const BuildOptions& options,
                            Diagnostics& diagnostics) {
  NeuralNetwork network;
  Diagnostics own;  // of this network only: it is built if there are none
  const auto found = find_model(model, own);
  if (found) build_object(*found, options, network, own);
  if (is_divided(options.sharding)) {
    report(own, model,
           "devices that share a module's tensors are not executable; expected a \"parallel\" "
           "section of \"pipeline\", \"stages\" and \"data\" alone");
  }
  network.samples_per_micro_batch = options.micro_batch_size;
  for (const std::string& message : own.messages()) diagnostics.add("", 0, "", message);
  return own.empty() ? network : NeuralNetwork();
}

}  // namespace interlock
