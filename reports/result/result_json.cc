// Result JSON: the contract "interlock-result/1" for programs; docs/result.md says what keys mean.
// SPDX-License-Identifier: Apache-2.0
#include "reports/result/result_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/headlines/economics_figures.h"
#include "reports/headlines/run_json.h"
#include "reports/headlines/swarm_json.h"
#include "reports/headlines/variation_figures.h"
#include "reports/report.h"
#include "reports/result/scenario_json.h"
#include "reports/words/encode.h"
#include "reports/words/mesh_words.h"
#include "scenarios/contract/contract.h"
#include "scenarios/simulate/pricing_levels.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

/// Whole bytes as whole numbers; only means over steps have fractions.
Json bytes_json(Bytes bytes) {
  const double value = bytes.value();
  const bool whole = std::floor(value) == value && std::abs(value) < 0x1p53;
  return whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

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

/// Seconds of a step; null where the run was too long to be explained.
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
    json[std::string(1, letter(static_cast<OpKind>(kind)))] = path.ops[kind];
  }
  json["messages"] = path.messages;
  json["collectives"] = path.collectives;
  json["unknown"] = path.unknown;
  return json;
}

Json device_json(const DeviceMetrics& device, const Coordinates& at, int number) {
  Json json{{"rank", device.rank},
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
  const Scenario& scenario = result.scenario;
  json["format"] = "interlock-result/1";
  json["program_version"] = INTERLOCK_VERSION;
  json["name"] = clean_utf8(scenario.name);
  json["model"] = clean_utf8(scenario.model_name);
  json["cluster"] = clean_utf8(scenario.cluster.name);
  const bool ours = !scenario.workload;  // else nobody says
  json["strategy"] = ours ? Json(name_of(scenario.strategy)) : Json(nullptr);
  json["schedule"] = ours ? Json(schedule_entry(scenario.schedule.kind).name) : Json(nullptr);
  json["partition"] = modules_per_stage(scenario.partition);
  json["micro_batches"] = scenario.micro_batches;
  json["token_slices"] = Json::array();
  for (const TokenSlice& slice : scenario.slices) json["token_slices"].push_back(slice.length);
  json["parts"] = Json::array();
  for (const BatchPart& part : scenario.parts) {
    Json lengths = Json::array();
    for (const TokenSlice& slice : part.slices) lengths.push_back(slice.length);
    json["parts"].push_back({{"samples", part.samples}, {"token_slices", lengths}});
  }
}

Json parallel_json(const Scenario& scenario) {
  const Mesh& mesh = scenario.mesh;
  const Sharding& sharding = scenario.sharding;
  const DataParallel& policy = scenario.data_parallel;
  const auto chosen = [](const char* key, auto value) {
    return contract_names("parallel", key)[static_cast<std::size_t>(value)];
  };
  Json json = coordinates_json(mesh.degrees);
  json["expert"] = mesh.expert;
  json["expert_imbalance"] = sharding.expert_imbalance;
  json["sequence_parallel"] = sharding.sequence_parallel;
  json["tensor_layout"] = chosen("tensor_layout", sharding.tensor_layout);
  json["tensor_depth"] = mesh.tensor_depth;
  json["context_layout"] = chosen("context_layout", sharding.context_layout);
  json["spatial"] = {sharding.image_rows, sharding.image_columns};
  json["zero_stage"] = policy.zero_stage;
  json["shard"] = mesh.shard;
  json["overlap_gradients"] = policy.overlap_gradients;
  json["overlap_weights"] = policy.overlap_weights;
  json["gradient_reduction"] = chosen("gradient_reduction", policy.gradient_reduction);
  json["gradient_density"] = policy.gradient_density;
  json["bucket_bytes"] = bytes_json(policy.bucket);
  json["prefetch"] = policy.prefetch;
  for (const Dimension dimension : mesh.order) {
    json["order"].push_back(dimension_names()[static_cast<std::size_t>(dimension)]);
  }
  return json;
}

void add_layout(Json& json, const ScenarioResult& result) {
  const Scenario& scenario = result.scenario;
  json["parallel"] = parallel_json(scenario);
  json["devices_total"] = scenario.mesh.devices();
  json["devices_simulated"] = result.measurement.metrics.devices.size();
  json["folded"] = Json::object();
  for (const Dimension dimension : folded_dimensions(scenario)) {
    const std::string& name = dimension_names()[static_cast<std::size_t>(dimension)];
    json["folded"][name] = scenario.mesh.degree(dimension);
  }
}

void add_times(Json& json, const Metrics& metrics) {
  json["engine"] = metrics.engine;
  json["tasks"] = metrics.tasks;
  json["skipped_tasks"] = metrics.skipped_tasks;
  json["wall_time_s"] = metrics.wall_time.value();
  json["step_time_s"] = metrics.step_time.value();
  json["makespan_s"] = metrics.makespan.value();
  json["steady"] = metrics.steady;
  json["fill_steps"] = metrics.fill_steps;
  json["measured_steps"] = metrics.measured_steps;
  json["fill_latency_s"] = metrics.fill_latency.value();
  json["window_begin_s"] = metrics.window_begin.value();
  json["window_end_s"] = metrics.window_end.value();
}

void add_figures(Json& json, const Metrics& metrics, int devices) {
  const auto each = [&](std::optional<double> rate) {
    return or_null(rate ? std::optional(*rate / devices) : std::nullopt);
  };
  json["samples_per_s"] = or_null(metrics.samples_per_s);
  json["tokens_per_s"] = or_null(metrics.tokens_per_s);
  json["samples_per_s_per_device"] = each(metrics.samples_per_s);
  json["tokens_per_s_per_device"] = each(metrics.tokens_per_s);
  json["utilisation"] = {{"busy", metrics.busy},
                         {"useful", metrics.useful},
                         {"mfu", or_null(metrics.mfu)},
                         {"hfu", or_null(metrics.hfu)}};
  json["attention_flops"] = metrics.attention_flops;
  json["bubble_fraction"] = 1 - metrics.busy;
  json["exposed_communication_s"] = metrics.exposed_communication.value();
  json["limiting_device"] = metrics.limiting_device;
  json["fits_in_memory"] = metrics.fits_in_memory;
  const bool known = metrics.memory_capacity > Bytes(0);
  json["memory_capacity_bytes"] = known ? bytes_json(metrics.memory_capacity) : Json(nullptr);
  json["host_peak_bytes"] = bytes_json(metrics.host_memory);
  const bool host_known = metrics.host_capacity > Bytes(0);
  json["host_capacity_bytes"] = host_known ? bytes_json(metrics.host_capacity) : Json(nullptr);
  json["staleness"] = staleness_json(metrics);
}

/// By class: seconds, and their shares by level.
void add_pricing(Json& json, const Scenario& scenario) {
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
  add_times(json, metrics);
  add_figures(json, metrics, result.scenario.mesh.devices());
  add_economics(json, result);
  json["critical_path_s"] = path_json(metrics);
  add_pricing(json, result.scenario);
  json["devices"] = Json::array();
  const std::vector<Coordinates> coordinates = rank_coordinates(result.scenario);
  for (const auto& device : metrics.devices) {
    const Coordinates& at = coordinates.at(device.rank);
    const int number = device_of(result.scenario.mesh, at);
    json["devices"].push_back(device_json(device, at, number));
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
  json["sweep"] = sweep_json(result.scenario);
  json["scenario"] = scenario_json(result.scenario);
  json["run"] = result.run ? run_json(*result.run) : Json(nullptr);
  const bool samples_known = result.scenario.graph.samples_per_micro_batch.has_value();
  json["swarm"] = result.swarm ? swarm_json(*result.swarm, samples_known) : Json(nullptr);
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
