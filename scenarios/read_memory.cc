// Reads what of a micro-batch is computed again, and what waits in the memory of hosts.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "base/text.h"
#include "scenarios/contract.h"
#include "scenarios/loader.h"

namespace interlock {
namespace {

constexpr int kMostLayers = 1'000'000;

double read_share(Section& section, std::string_view key) {
  const std::optional<JsonNode> node = section.get(key);
  return node ? read_number(*node, 0, 1, section.diagnostics()).value_or(0) : 0;
}

}  // namespace

void read_recompute(const JsonNode& node, TrainingKeys& training, Diagnostics& diagnostics) {
  if (node.value->kind == JsonValue::Kind::String) {
    const auto choice = read_choice(node, contract_names("training", "recompute"), diagnostics);
    if (choice) training.recompute = static_cast<Recompute>(*choice);
  } else if (node.value->kind == JsonValue::Kind::Object) {
    Section section("training.recompute", node, diagnostics);
    section.require("full_layers", "a number of layers, {\"full_layers\": 8} say");
    training.recompute = Recompute::Full;
    training.recompute_layers = section.count("full_layers", 1, 0, kMostLayers);
    section.finish();
  } else {
    report(diagnostics, node, "expected \"none\", \"selective\", \"full\" or {\"full_layers\": 8}");
  }
}

void read_offload(const JsonNode& node, TrainingKeys& training, Diagnostics& diagnostics) {
  Section section("training.offload", node, diagnostics);
  training.offload_node = node;
  training.offload.activations = read_share(section, "activations");
  training.offload.optimizer = read_share(section, "optimizer");
  section.finish();
}

namespace {

void check_recompute(const TrainingKeys& training, const ModelGraph& graph,
                     Diagnostics& diagnostics) {
  if (!training.recompute_layers) return;
  const auto layers = std::count_if(graph.modules.begin(), graph.modules.end(),
                                    [](const Module& module) { return !module.recompute.empty(); });
  if (layers >= *training.recompute_layers) return;
  report(diagnostics, training.node.child("recompute").child("full_layers"),
         "more layers than " + in_quotes(graph.name) + " can compute again; expected at most " +
             std::to_string(layers) + ", got " + std::to_string(*training.recompute_layers));
}

void check_offload(const TrainingKeys& training, const Cluster& cluster, Diagnostics& diagnostics) {
  if (!has_host(cluster)) {
    report(diagnostics, *training.offload_node,
           "nobody knows the way from a device of " + in_quotes(cluster.name) +
               " to its host's memory; expected a machine with a \"host\", such as " +
               in_quotes("dgx-a100-80g"));
  }
}

}  // namespace

void check_contention(const Scenario& scenario, const std::optional<Cluster>& cluster,
                      const JsonNode& document, Diagnostics& diagnostics) {
  if (!scenario.memory_contention || !cluster || has_rates(cluster->device)) return;
  report(diagnostics, document.child("simulate").child("memory_contention"),
         "nobody knows the memory bandwidth of the devices of " + in_quotes(cluster->name) +
             "; expected a cluster with a \"device\", \"a100-80g\" say");
}

void check_memory(const TrainingKeys& training, const std::optional<ModelGraph>& graph,
                  const std::optional<Cluster>& cluster, bool cuts_sequences,
                  Diagnostics& diagnostics) {
  if (graph) check_recompute(training, *graph, diagnostics);
  if (!training.offload.any()) return;
  if (cluster) check_offload(training, *cluster, diagnostics);
  if (cuts_sequences && training.offload.activations > 0) {
    report(diagnostics, training.offload_node->child("activations"),
           "later slices of a sequence read what earlier ones keep, so that it cannot leave; "
           "expected 0 under a schedule that cuts sequences");
  }
}

}  // namespace interlock
