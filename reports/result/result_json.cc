// Result JSON: the contract "interlock-result/1" for programs; docs/result.md says what keys mean.
// SPDX-License-Identifier: Apache-2.0
#include "reports/result/result_json.h"

#include <nlohmann/json.hpp>

#include "reports/headlines/economics_headlines.h"
#include "reports/headlines/run_json.h"
#include "reports/headlines/swarm_json.h"
#include "reports/headlines/variation_headlines.h"
#include "reports/report.h"
#include "reports/result/all_metrics.h"
#include "reports/result/scenario_json.h"
#include "reports/words/encode.h"
#include "reports/words/mesh_words.h"
#include "scenarios/contract/contract.h"
#include "scenarios/simulate/pricing_levels.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

Json modules_per_stage(const Partition& partition) {
  Json counts = Json::array();
  for (int stage = 0; stage < partition.stages(); ++stage) {
    counts.push_back(partition.boundaries[stage + 1] - partition.boundaries[stage]);
  }
  return counts;
}

Json coordinates_json(const Coordinates& at) {
  Json json;
  for (int i = kDimensions - 1; i >= 0; --i) {
    json[dimension_names()[static_cast<std::size_t>(i)]] = at[static_cast<std::size_t>(i)];
  }
  return json;
}

Json time_json(const DeviceMetrics& device) {
  Json json;
  for (int use = 0; use < kTimeUses; ++use) {
    json[name_of(static_cast<TimeUse>(use))] = device.time[use];
  }
  return json;
}

/// Returns the seconds of a step; null where the run was too long to be explained.
Json bubbles_json(const Metrics& metrics, int rank) {
  if (!metrics.explanation) return nullptr;
  Json json;
  for (int cause = 0; cause < kBubbleCauses; ++cause) {
    json[name_of(static_cast<BubbleCause>(cause))] = metrics.explanation->devices[rank][cause];
  }
  return json;
}

Json path_json(const Metrics& metrics) {
  if (!metrics.explanation) return nullptr;
  const PathUse& path = metrics.explanation->path;
  Json json;
  for (int kind = 0; kind < kOpKinds; ++kind) {
    const auto of = static_cast<OpKind>(kind);
    if (of_vocabulary(of) && path.ops[kind] == 0) continue;
    json[std::string(1, letter(of))] = path.ops[kind];
  }
  json["messages"] = path.messages;
  json["collectives"] = path.collectives;
  json["unknown"] = path.unknown;
  return json;
}

Json device_json(const DeviceMetrics& device, const Coordinates& at, int number) {
  Json json{
      {"rank", device.rank},
      {"device", number},
      {"coordinates", coordinates_json(at)},
      {"stages", device.stages},
      {"weight_versions", device.weight_versions},
      {"reuse", device.reuse},
      {"busy", device.busy},
      {"useful", device.useful},
      {"time_shares", time_json(device)},
      {"peak_memory_bytes", bytes_json(device.peak_memory)},
      {"peak_stash_bytes", bytes_json(device.peak_stash)},
      {"allocated_peak_bytes", bytes_json(device.allocated_peak)},
      {"used_memory_bytes", device.used_memory ? bytes_json(*device.used_memory) : Json(nullptr)},
      {"peak_time_s", device.peak_time.value()}};
  Json& memory = json["memory_bytes"];
  for (int i = 0; i < kMemoryClasses; ++i) {
    memory[name_of(static_cast<MemoryClass>(i))] = bytes_json(device.memory[i]);
  }
  json["host_memory_bytes"] = {{"optimizer", bytes_json(device.host.optimizer)},
                               {"gradients", bytes_json(device.host.gradients)},
                               {"stash", bytes_json(device.host.stash)}};
  return json;
}

Json staleness_json(const Metrics& metrics) {
  Json json = Json::object();
  for (const auto& [updates, count] : metrics.staleness) json[std::to_string(updates)] = count;
  return json;
}

void add_identity(Json& json, const ScenarioResult& result) {
  const Plan& plan = result.plan;
  const Question& scenario = plan.question;
  json["format"] = "interlock-result/1";
  json["program_version"] = INTERLOCK_VERSION;
  json["name"] = clean_utf8(scenario.name);
  json["model"] = clean_utf8(workload_name(scenario));
  json["cluster"] = clean_utf8(scenario.cluster.name);
  const bool recorded = scenario.trace() != nullptr;  // it does not say
  json["strategy"] = recorded ? Json(nullptr)
                              : Json(name_of(scenario.training().strategy) +
                                     crossings_of(scenario.training().strategy));
  json["schedule"] = recorded ? Json(nullptr) : Json(plan.schedule.kind->name);
  json["partition"] = modules_per_stage(plan.partition);
  json["micro_batches"] = plan.micro_batches;
  json["replica_micro_batches"] = plan.replica_micro_batches;
  json["token_slices"] = Json::array();
  for (const TokenSlice& slice : plan.slices) json["token_slices"].push_back(slice.length);
  json["parts"] = Json::array();
  for (const SizedBatch& batch : plan.sized_batches) {
    Json lengths = Json::array();
    for (const TokenSlice& slice : batch.slices) lengths.push_back(slice.length);
    json["parts"].push_back({{"samples", batch.samples}, {"token_slices", lengths}});
  }
}

/// Adds the degrees of layers that have some of their own, one entry for modules in a row.
void add_layers(Json& json, const Layout& layout) {
  const std::vector<int>& of_module = layout.layout_of_module;
  for (std::size_t m = 0; m < of_module.size(); ++m) {
    if (of_module[m] == 0) continue;
    const LayerDegrees& degrees = layout.layer_layouts[of_module[m]];
    Json& list = json["layer_layouts"];
    if (m == 0 || of_module[m - 1] != of_module[m]) {
      list.push_back({{"modules", {m, m}}, {"tensor", degrees.tensor}, {"data", degrees.data}});
    }
    list.back()["modules"][1] = m + 1;
  }
}

Json parallel_json(const Question& scenario) {
  const Mesh& mesh = scenario.layout.mesh;
  const Sharding& sharding = scenario.layout.sharding;
  const DataParallel& policy = scenario.layout.data_parallel;
  const auto chosen = [](const char* key, auto value) {
    return contract_names("parallel", key)[static_cast<std::size_t>(value)];
  };
  Json json = coordinates_json(mesh.degrees);
  json["expert"] = mesh.expert;
  if (mesh.expert_tensor) json["expert_tensor"] = *mesh.expert_tensor;
  json["expert_imbalance"] = sharding.expert_imbalance;
  const auto add_unusual = [&](const char* key, auto value) {
    if (static_cast<int>(value) != 0) json[key] = chosen(key, value);
  };
  add_unusual("expert_dispatch", sharding.expert_dispatch);
  add_unusual("dispatch_format", sharding.dispatch_format);
  add_unusual("combine_format", sharding.combine_format);
  add_unusual("expert_overlap", sharding.expert_overlap);
  json["sequence_parallel"] = sharding.sequence_parallel;
  json["tensor_layout"] = chosen("tensor_layout", sharding.tensor_layout);
  json["tensor_depth"] = mesh.tensor_depth;
  json["context_layout"] = chosen("context_layout", sharding.context_layout);
  if (sharding.context_columns > 1) json["context_all_to_all"] = sharding.context_columns;
  json["spatial"] = {sharding.image_rows, sharding.image_columns};
  json["zero_stage"] = policy.zero_stage;
  json["shard"] = mesh.shard;
  json["overlap_gradients"] = policy.overlap_gradients;
  json["overlap_weights"] = policy.overlap_weights;
  json["gradient_reduction"] = chosen("gradient_reduction", policy.gradient_reduction);
  json["gradient_density"] = policy.gradient_density;
  const auto bucket = policy.gradient_bucket();
  json["bucket_bytes"] = bucket ? bytes_json(*bucket) : nlohmann::ordered_json();
  json["prefetch"] = policy.prefetch;
  if (const OuterSteps& outer = policy.outer; outer.any()) {
    json["outer"] = {{"every", outer.every},
                     {"workers", mesh.replicas() / mesh.shard},
                     {"fragments", outer.fragments},
                     {"element_bytes", outer.element},
                     {"overlap", outer.overlap}};
    if (outer.network_share > 0) json["outer"]["network_share"] = outer.network_share;
    if (outer.compensates) json["outer"]["delay_compensation"] = true;
  }
  add_layers(json, scenario.layout);
  for (const Dimension dimension : mesh.order) {
    json["order"].push_back(dimension_names()[static_cast<std::size_t>(dimension)]);
  }
  return json;
}

void add_layout(Json& json, const ScenarioResult& result) {
  const Question& scenario = result.plan.question;
  json["parallel"] = parallel_json(scenario);
  json["devices_total"] = scenario.layout.mesh.devices();
  json["devices_simulated"] = result.measurement.metrics.devices.size();
  if (!result.plan.uneven.empty()) json["folding_uneven"] = result.plan.uneven;
  json["folded"] = Json::object();
  for (const Dimension dimension : folded_dimensions(result.plan)) {
    const std::string& name = dimension_names()[static_cast<std::size_t>(dimension)];
    json["folded"][name] = simulated_mesh(result.plan).degree(dimension);
  }
}

/// Adds the seconds of each class, and their shares by level.
void add_pricing(Json& json, const Question& scenario) {
  for (const PricingLevels& levels : pricing_levels(scenario)) {
    Json& own = json["priced_by"][op_class_names()[static_cast<std::size_t>(levels.op_class)]];
    own["time_s"] = levels.time.value();
    for (std::size_t i = 0; i < levels.shares.size(); ++i) {
      own[priced_by_names()[i]] = levels.shares[i];
    }
  }
}

}  // namespace

Json result_document(const ScenarioResult& result) {
  const Metrics& metrics = result.measurement.metrics;
  Json json;
  add_identity(json, result);
  add_layout(json, result);
  add_step_metrics(json, metrics);
  json["staleness"] = staleness_json(metrics);
  for (const StageStaleness& stage : metrics.stage_staleness) {
    json["stage_staleness"].push_back({{"most", stage.most}, {"mean", stage.mean}});
  }
  add_economics(json, result);
  json["critical_path_s"] = path_json(metrics);
  add_pricing(json, result.plan.question);
  json["devices"] = Json::array();
  const std::vector<Coordinates> coordinates = rank_coordinates(result.plan);
  for (const auto& device : metrics.devices) {
    const Coordinates& at = coordinates.at(device.rank);
    const int number = device_of(result.plan.question.layout.mesh, at);
    json["devices"].push_back(device_json(device, at, number));
    if (const Cluster& cluster = result.plan.question.cluster; is_mixed(cluster)) {
      json["devices"].back()["kind"] = clean_utf8(machine_of(cluster, number).device.name);
      json["devices"].back()["memory_capacity_bytes"] =
          bytes_json(device.memory_capacity.value_or(Bytes(0)));
    }
    json["devices"].back()["bubble_s"] = bubbles_json(metrics, device.rank);
  }
  json["links"] = Json::array();
  for (const auto& link : metrics.links) {
    json["links"].push_back({{"name", clean_utf8(link.name)},
                             {"bytes", bytes_json(link.bytes)},
                             {"utilisation", link.utilisation},
                             {"stands_for", link.stands_for}});
  }
  if (result.varied) json["variation"] = variation_json(result);
  json["sweep"] = sweep_json(result.plan.question);
  json["scenario"] = scenario_json(result.plan.question);
  json["run"] = result.run ? run_json(*result.run) : Json(nullptr);
  json["swarm"] = nullptr;
  if (result.swarm) {
    const ModelGraph& graph = result.plan.question.training().graph;
    json["swarm"] = swarm_json(*result.swarm, graph.samples_per_micro_batch.has_value());
  }
  return json;
}

std::string result_json(const ScenarioResult& result) {
  return result_document(result).dump(2) + "\n";
}

std::string result_json(const std::vector<ScenarioResult>& results) {
  Json array = Json::array();
  for (const auto& result : results) array.push_back(result_document(result));
  return array.dump(2) + "\n";
}

}  // namespace interlock
