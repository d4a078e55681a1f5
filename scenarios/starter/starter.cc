// Chooses a plan by a search of those that a person would try.
// SPDX-License-Identifier: Apache-2.0
//
// Outline: load model and machine alone, so that what is wrong with them is told; choose a batch;
// search the fastest plan that leaves some memory, or else the leanest.
#include "scenarios/starter/starter.h"

#include <limits>

#include "base/text.h"
#include "hardware/devices/borrowed_efficiency.h"
#include "hardware/networks/cluster_reader.h"
#include "hardware/networks/node_share.h"
#include "models/build_model.h"
#include "scenarios/contract/set_key.h"

namespace interlock {
namespace {

constexpr double kTokensInBatch = 1 << 20;  // of language models: a usual batch is about as large
constexpr int kImagesPerDevice = 32;

ModelGraph model_of(const StarterQuestion& question) {
  JsonValue model = json_text(question.model);
  if (question.sequence_length > 0) {
    model =
        json_object({{"base", model}, {"sequence_length", json_number(question.sequence_length)}});
  }
  Diagnostics diagnostics;
  ModelGraph graph = build_model({&model, ""}, {}, diagnostics);
  diagnostics.throw_if_any();
  return graph;
}

Cluster machine_of(const StarterQuestion& question) {
  const JsonValue name = json_text(question.machine);
  Diagnostics diagnostics;
  Cluster cluster = read_cluster({&name, ""}, diagnostics);
  diagnostics.throw_if_any();
  return cluster;
}

/// Takes nodes for the devices, and equal parts of nodes where they fill no whole ones.
void take_nodes(const Cluster& cluster, Starter& starter) {
  const int devices = starter.question.devices;
  if (!std::holds_alternative<IdealSwitch>(cluster.network)) {
    if (devices <= cluster.devices) return;  // its network is made for a number of nodes
    throw Error(cluster.name + " has " + std::to_string(cluster.devices) +
                " devices; expected at most as many, got " + std::to_string(devices));
  }
  const int all = cluster.machines.front().devices_per_node;
  if (devices > all && cluster.machines.front().cards_per_node == 0) {
    throw Error(cluster.name + " has no network cards, so only its " + std::to_string(all) +
                " devices; got " + std::to_string(devices));
  }
  const int share = share_of_node(all, devices);
  starter.nodes = (devices + share - 1) / share;
  if (share == all) return;
  starter.devices_per_node = share;
  starter.of_node = all;
  starter.share = node_share_words(all, devices);
}

std::string precision_of(const Device& device) {
  for (const Precision precision : {Precision::Bf16, Precision::Fp16, Precision::Tf32}) {
    if (supports(device, precision)) {
      return precision_names()[static_cast<std::size_t>(precision)];
    }
  }
  return "fp32";
}

/// Returns the devices times a power of two, near what is usual.
int batch_for(const ModelGraph& graph, int devices) {
  if (!graph.tokens_per_sample) return kImagesPerDevice * devices;
  int batch = devices;
  while (batch * *graph.tokens_per_sample < kTokensInBatch && batch < 1 << 20) batch *= 2;
  return batch;
}

/// Returns the best plan by `aim` within the limits of memory that `limits` has, of those that a
/// starter's text can say.
SearchResult best_plan(const JsonValue& document, Aim aim, const PlanLimits& limits, int processes,
                       const SearchProgress& told) {
  SearchRequest request{.aim = aim, .limits = limits, .only_best = true};
  for (const SearchOption& option : kSearchOptions) request.options[option.path] = {JsonValue{}};
  for (const char* again : {"none", "selective", "full"}) {
    request.recompute.push_back(json_text(again));
  }
  request.zero_stages = {1};
  request.schedules = {json_text("1f1b")};
  request.context_layouts = {json_text("ring")};
  return search_plans(document, request, processes, told);
}

void take_plan(Starter& starter, const SearchResult& search) {
  const FoundPlan& found = search.plans.front();
  const PlanLayout& layout = found.layout;
  starter.plan.tensor = layout.tensor;
  starter.plan.pipeline = layout.pipeline;
  starter.plan.data = layout.data;
  starter.plan.context = layout.context;
  starter.plan.expert = layout.expert;
  starter.plan.expert_tensor = layout.expert_tensor;
  starter.plan.micro_batch_size = layout.micro_batch_size;
  starter.plan.recompute = layout.recompute.text;
  starter.plans = search.counts.plans - search.counts.refused;
  starter.step_time = Seconds(found.estimate.step_time);
  starter.peak_memory = Bytes(found.estimate.peak_memory);
  starter.too_large = found.estimate.too_large;
  starter.cut_off = search.cut_off;
  starter.simulated = found.simulated;
  starter.fits = starter.peak_memory <= starter.memory;
}

}  // namespace

Starter begin_starter(const StarterQuestion& question) {
  const ModelGraph graph = model_of(question);
  const Cluster cluster = machine_of(question);
  Starter starter{.question = question,
                  .precision = precision_of(front_device(cluster)),
                  .optimizer = graph.tokens_per_sample ? "adam" : "sgd-momentum",
                  .notes = graph.notes,
                  .tokens_per_sample = graph.tokens_per_sample,
                  .memory = front_device(cluster).memory};
  take_nodes(cluster, starter);
  if (const Device& device = front_device(cluster); device.borrowed) {
    starter.lender = device.borrowed->from;
    starter.borrowed = borrowed_words(device);
  }
  const int asked = question.global_batch_size;
  starter.plan.global_batch_size = asked > 0 ? asked : batch_for(graph, question.devices);
  return starter;
}

JsonValue planless_document(const Starter& starter, const char* command) {
  JsonValue document = parse_json(starter_text(starter, ""), command);
  if (!starter.tokens_per_sample) return document;
  set_key(document, "parallel.sequence_parallel", json_boolean(true), command);
  return document;
}

Starter make_starter(const StarterQuestion& question, int processes, const SearchProgress& told) {
  Starter starter = begin_starter(question);
  JsonValue document = planless_document(starter, "interlock init");
  apply_overrides(document, question.overrides);
  const PlanLimits limits = request_of(document).limits;
  SearchResult search = best_plan(document, Aim::Time, limits, processes, told);
  starter.fits_well = !search.plans.empty();
  starter.unproven = unproven(search.counts);
  if (!starter.fits_well) {
    constexpr double kAny = std::numeric_limits<double>::infinity();
    const bool all_looked_at = starter.unproven == 0;
    search = best_plan(document, Aim::Memory, {.memory = Bytes(kAny)}, processes, told);
    // The leanest may fit where no effort was left for it in the first search.
    starter.fits_well = !all_looked_at && !search.plans.empty() &&
                        !limit_met(limits, search.plans.front().estimate, Grade::Simulation);
    if (!starter.fits_well) starter.unproven = unproven(search.counts);
  }
  if (search.plans.empty()) {
    throw Error("no plan for " + question.model + " can be simulated: " + search.counts.failure);
  }
  starter.left_out = search.counts.left_out;
  take_plan(starter, search);
  if (starter.memory > Bytes(0)) starter.reserve = reserve_words(search.scenario, limits.reserve);
  return starter;
}

}  // namespace interlock
