// Sparse MLP: reads who needs how many neurons of whom, and writes out the busiest worker's work.
// SPDX-License-Identifier: Apache-2.0
#include "models/networks/sparse_mlp.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "models/layers/model_contract.h"
#include "models/layers/operators.h"
#include "models/networks/sharding_check.h"

namespace interlock {
namespace {

constexpr int kMostNeurons = 100'000'000;

void read_needed(const JsonNode& node, int workers, int held, SparseLayer& layer,
                 Diagnostics& diagnostics) {
  const auto list_of = [&](const JsonNode& list) {
    const JsonValue& value = *list.value;
    const bool good = value.kind == JsonValue::Kind::Array &&
                      value.items.size() == static_cast<std::size_t>(workers);
    if (!good) {
      report(diagnostics, list,
             "expected a list of " + std::to_string(workers) + ", one for each tensor device");
    }
    return good;
  };
  if (!list_of(node)) return;
  for (std::size_t i = 0; i < node.value->items.size(); ++i) {
    const JsonNode row = node.item(i);
    if (!list_of(row)) continue;
    std::vector<int>& numbers = layer.needed.emplace_back();
    for (std::size_t j = 0; j < row.value->items.size(); ++j) {
      numbers.push_back(read_count(row.item(j), 0, held, diagnostics).value_or(0));
    }
  }
}

/// `before`: neurons of the layer before.
SparseLayer read_layer(const JsonNode& node, int workers, int before, Diagnostics& diagnostics) {
  SparseLayer layer;
  Section reader(contract_object(sparse_mlp_contract(), "model.sparse-mlp.layers"), node,
                 diagnostics);
  layer.size = reader.required_count("size", "a number of neurons");
  check_parts(reader, "size", layer.size, workers, std::to_string(workers) + " tensor devices");
  const auto density = reader.get("density"), needed = reader.get("needed");
  if (density.has_value() == needed.has_value()) {
    report(diagnostics, node,
           "who needs whose neurons? expected \"density\" or \"needed\", one of the two");
  } else if (density) {
    layer.density = reader.number_at("density", *density).value_or(0);
  } else {
    read_needed(*needed, workers, before / workers, layer, diagnostics);
  }
  reader.finish();
  return layer;
}

/// Neurons of worker i that worker j needs, in a layer behind one of `before` neurons.
int needed_of(const SparseLayer& layer, int before, int workers, int i, int j) {
  if (!layer.needed.empty()) return layer.needed[i][j];
  const int held = before / workers;
  return i == j ? held : static_cast<int>(std::lround(layer.density * held));
}

/// The work of the busiest workers of a layer.
struct Busiest {
  std::int64_t inputs = 0;      // neurons that one reads
  std::int64_t travelling = 0;  // neurons that one sends or receives
};

Busiest busiest_of(const SparseLayer& layer, int before, int workers) {
  Busiest busiest;
  for (int worker = 0; worker < workers; ++worker) {
    std::int64_t sent = 0, received = 0;
    const int own = needed_of(layer, before, workers, worker, worker);
    for (int other = 0; other < workers; ++other) {
      if (other == worker) continue;
      sent += needed_of(layer, before, workers, worker, other);
      received += needed_of(layer, before, workers, other, worker);
    }
    busiest.inputs = std::max(busiest.inputs, received + own);
    busiest.travelling = std::max({busiest.travelling, sent, received});
  }
  return busiest;
}

Module layer_module(const SparseLayer& layer, int before, const BuildOptions& options) {
  const int workers = options.sharding.tensor;
  const double element = element_bytes(options.precision);
  const double samples = options.micro_batch_size;
  const Busiest busiest = busiest_of(layer, before, workers);
  const int outputs = layer.size / workers;
  std::vector<Operator> operators = {linear({samples, busiest.inputs, outputs}, element),
                                     relu(samples * outputs, element)};
  Operator& product = operators.front();
  product.reads_module_input = true;
  if (busiest.travelling > 0) {
    // An all-to-all of S brings each member (n - 1) / n of S.
    const double part = static_cast<double>(workers) / (workers - 1);
    const Exchange exchange = {
        CollectiveKind::AllToAll, MeshAxis::Tensor,
        Bytes(samples * static_cast<double>(busiest.travelling) * element * part)};
    product.forward_exchanges = product.input_exchanges = {exchange};
  }
  return make_module({.input = Bytes(samples * before / workers * element),
                      .output = Bytes(samples * outputs * element)},
                     operators, options);
}

}  // namespace

const std::vector<ContractObject>& sparse_mlp_contract() {
  using namespace contract;
  static const std::vector<ContractObject> objects = {
      model_object(
          "sparse-mlp",
          "Layers of neurons divided among tensor devices, each of which needs some neurons of "
          "the others (RePurpose, arXiv 2008.08289). For the strategy `inference`.",
          {{"input_size", whole(1, kMostNeurons), "required", "Numbers of a sample."},
           {"layers", list(object("model.sparse-mlp.layers"), 1, kMostModules), "required",
            "The layers in order."}}),
      {.name = "model.sparse-mlp.layers",
       .meaning = "One layer of neurons.",
       .keys = {{"size", whole(1, kMostNeurons), "required", "Neurons."},
                {"density", number(0, 1), "required without `needed`",
                 "Share of each other device's neurons of the layer before that a device needs."},
                {"needed", list(list(whole(0))), "",
                 "Instead of `density`, a list for each device i: how many neurons of i device 0, "
                 "1, ... needs."}}}};
  return objects;
}

SparseMlp read_sparse_mlp(Section& reader, int workers) {
  SparseMlp shape;
  shape.input_size = reader.required_count("input_size", "numbers of a sample");
  check_parts(reader, "input_size", shape.input_size, workers,
              std::to_string(workers) + " tensor devices");
  const auto list =
      reader.require("layers", "a list of layers, [{\"size\": 4096, \"density\": 0.1}]");
  if (!list) return shape;
  int before = shape.input_size;
  for (const JsonNode& layer :
       reader.items_at("layers", *list, "wrong list of layers",
                       "objects, e.g. [{\"size\": 4096, \"density\": 0.1}]")) {
    shape.layers.push_back(read_layer(layer, workers, before, reader.diagnostics()));
    before = shape.layers.back().size;
  }
  return shape;
}

ModelGraph build_sparse_mlp(const SparseMlp& shape, const BuildOptions& options) {
  ModelGraph graph = {.samples_per_micro_batch = options.micro_batch_size};
  int before = shape.input_size;
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    Module layer = layer_module(shape.layers[i], before, options_of_layer(options, i));
    layer.name = "layer" + std::to_string(i);
    graph.modules.push_back(std::move(layer));
    before = shape.layers[i].size;
  }
  return graph;
}

}  // namespace interlock
