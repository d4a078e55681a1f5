// MLP: reads fully connected networks and writes out their operators.
// SPDX-License-Identifier: Apache-2.0
#include "models/networks/mlp.h"

#include "models/layers/required_count.h"

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

void read_hidden_sizes(ObjectReader& reader, const JsonNode& node, Mlp& mlp) {
  const JsonValue& list = *node.value;
  if (list.kind != JsonValue::Kind::Array || list.items.empty() ||
      list.items.size() >= kMostModules) {
    report(reader.diagnostics(), node,
           "wrong list of hidden layers; expected 1 to 99999 widths, e.g. [4096, 4096]");
    return;
  }
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    mlp.hidden_sizes.push_back(
        read_count(node.item(i), 1, kMostWidth, reader.diagnostics()).value_or(1));
  }
}

}  // namespace

Mlp read_mlp(ObjectReader& reader) {
  Mlp mlp;
  mlp.input_size = required_count(reader, "input_size", "numbers of a sample", kMostWidth);
  const auto list = reader.get("hidden_sizes");
  const auto layers = reader.get("layers");
  const auto size = reader.get("hidden_size");
  if (list && (layers || size)) {
    report(reader.diagnostics(), *list,
           "hidden layers are given twice; expected \"hidden_sizes\", or \"layers\" with "
           "\"hidden_size\"");
  } else if (list) {
    read_hidden_sizes(reader, *list, mlp);
  } else {
    const int count =
        required_count(reader, "layers", "a number of hidden layers (or the list \"hidden_sizes\")",
                       kMostModules - 1);
    const int width =
        required_count(reader, "hidden_size", "the width of the hidden layers", kMostWidth);
    mlp.hidden_sizes.assign(static_cast<std::size_t>(count), width);
  }
  mlp.classes = required_count(reader, "classes", "a number of outputs", kMostWidth);
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
  if (head.kind == HeadKind::LaterLayers) attach_later_layers(head, options, graph.modules);
  return graph;
}

}  // namespace interlock
