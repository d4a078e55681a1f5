// MLP: reads fully connected networks and writes out their operators.
// SPDX-License-Identifier: Apache-2.0
#include "models/networks/mlp.h"

#include "models/layers/model_contract.h"

namespace interlock {
namespace {

/// After `layers` layers, every two of which are a pair.
HeadSite site_of(const Mlp& mlp, std::size_t layers, const BuildOptions& options) {
  return {.kind = SiteKind::Vector,
          .samples = static_cast<double>(options.micro_batch_size),
          .width = layers == 0 ? mlp.input_size : mlp.hidden_sizes[layers - 1],
          .classes = mlp.classes,
          .sharding = options.sharding,
          .inner = layers % 2 == 1};
}

/// `site`: where it reads.
Module hidden_layer(const HeadSite& site, int outputs, const BuildOptions& options) {
  const Sharding& sharding = options.sharding;
  const double element = element_bytes(options.precision);
  const LinearRole role = site.inner ? LinearRole::Row : LinearRole::Column;
  const LinearRole before = site.inner ? LinearRole::Column : LinearRole::Row;
  const double read = site.samples * static_cast<double>(site.width);
  const double made = site.samples * outputs * output_parts(sharding, role).share();
  std::vector<Operator> operators = {
      sharded_linear({site.samples, site.width, outputs}, role, sharding, element),
      relu(made, element)};
  operators.front().reads_module_input = true;
  return make_module({.input = Bytes(read * output_parts(sharding, before).share() * element),
                      .output = Bytes(made * element)},
                     operators, options);
}

Module readout_module(const Mlp& mlp, const BuildOptions& options) {
  const double element = element_bytes(options.precision);
  std::vector<Operator> operators =
      readout(site_of(mlp, mlp.hidden_sizes.size(), options), true, element);
  operators.front().reads_module_input = true;
  return make_module({.name = "readout", .recomputable = false}, operators, options);
}

}  // namespace

const std::vector<ContractObject>& mlp_contract() {
  using namespace contract;
  static const std::vector<ContractObject> objects = {
      model_object("mlp", "Fully connected layers. Modules: each hidden layer, readout.",
                   {{"input_size", whole(1, kMostWidth), "required", "Numbers of a sample."},
                    {"hidden_sizes", list(whole(1, kMostWidth), 1, kMostModules - 1), "",
                     "Widths of the hidden layers; instead of `layers` and `hidden_size`."},
                    {"layers", whole(1, kMostModules - 1), "required without `hidden_sizes`",
                     "Hidden layers of equal width."},
                    {"hidden_size", whole(1, kMostWidth), "required without `hidden_sizes`",
                     "Width of each hidden layer."},
                    {"classes", whole(1, kMostWidth), "required", "Outputs."},
                    head_key("linear")})};
  return objects;
}

Mlp read_mlp(Section& reader) {
  Mlp mlp;
  mlp.input_size = reader.required_count("input_size", "numbers of a sample");
  const auto list = reader.get("hidden_sizes");
  const auto layers = reader.get("layers");
  const auto size = reader.get("hidden_size");
  if (list && (layers || size)) {
    report(reader.diagnostics(), *list,
           "hidden layers are given twice; expected \"hidden_sizes\", or \"layers\" with "
           "\"hidden_size\"");
  } else if (list) {
    for (const JsonNode& width : reader.items_at(
             "hidden_sizes", *list, "wrong list of hidden layers", "widths, e.g. [4096, 4096]")) {
      mlp.hidden_sizes.push_back(reader.count_at("hidden_sizes", width).value_or(1));
    }
  } else {
    const int count =
        reader.required_count("layers", "a number of hidden layers (or the list \"hidden_sizes\")");
    const int width = reader.required_count("hidden_size", "the width of the hidden layers");
    mlp.hidden_sizes.assign(static_cast<std::size_t>(count), width);
  }
  mlp.classes = reader.required_count("classes", "a number of outputs");
  if (const auto head = reader.get("head")) {
    mlp.head = read_head(*head, SiteKind::Vector, reader.diagnostics());
  }
  return mlp;
}

ModelGraph build_mlp(const Mlp& shape, const BuildOptions& options) {
  HeadSpec head = shape.head;
  if (!head.kind) head.kind = HeadKind::Linear;
  ModelGraph graph = {.samples_per_micro_batch = options.micro_batch_size};
  for (std::size_t i = 0; i < shape.hidden_sizes.size(); ++i) {
    Module layer = hidden_layer(site_of(shape, i, options), shape.hidden_sizes[i],
                                options_of_layer(options, i));
    layer.name = "layer" + std::to_string(i);
    if (head.kind != HeadKind::LaterLayers) {
      layer.head = make_head(head, site_of(shape, i + 1, options), options);
    }
    graph.modules.push_back(std::move(layer));
  }
  graph.modules.push_back(readout_module(shape, options));
  if (head.kind == HeadKind::LaterLayers) attach_later_layers(head, options, graph.modules.edit());
  return graph;
}

}  // namespace interlock
