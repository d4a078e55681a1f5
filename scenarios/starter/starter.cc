// Chooses a plan by trying those that a person would try.
// SPDX-License-Identifier: Apache-2.0
//
// Outline: load model and machine alone, so that what is wrong with them is told; choose a batch;
// list plans; simulate them in parallel; keep the fastest that fits.
#include "scenarios/starter/starter.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/text.h"
#include "hardware/cluster.h"
#include "scenarios/run_scenario.h"
#include "scenarios/worker_pool.h"

namespace interlock {
namespace {

constexpr double kTokensInBatch = 1 << 20;  // of language models: a usual batch is about as large
constexpr int kImagesPerDevice = 32;
constexpr int kMostRanks = 64;
constexpr double kMostMemory = 0.9;  // of a device, as far as there is a choice
constexpr std::size_t kMostPlans = 400;

JsonValue text_value(const std::string& text) {
  return {.kind = JsonValue::Kind::String, .text = text};
}

ModelGraph model_of(const StarterQuestion& question) {
  const JsonValue name = text_value(question.model);
  Diagnostics diagnostics;
  ModelGraph graph = build_model({&name, ""}, {}, diagnostics);
  diagnostics.throw_if_any();
  return graph;
}

Cluster machine_of(const StarterQuestion& question) {
  const JsonValue name = text_value(question.machine);
  Diagnostics diagnostics;
  Cluster cluster = read_cluster({&name, ""}, diagnostics);
  diagnostics.throw_if_any();
  return cluster;
}

/// Nodes for the devices; 0 where the machine's network is made for a number of them.
int nodes_for(const Cluster& cluster, int devices) {
  if (!std::holds_alternative<IdealSwitch>(cluster.network)) {
    if (devices <= cluster.devices) return 0;
    throw Error(cluster.name + " has " + std::to_string(cluster.devices) +
                " devices; expected at most as many, got " + std::to_string(devices));
  }
  const int nodes = (devices + cluster.devices_per_node - 1) / cluster.devices_per_node;
  if (nodes == 1 || cluster.cards_per_node > 0) return nodes;
  throw Error(cluster.name + " has no network cards, so only its " +
              std::to_string(cluster.devices_per_node) + " devices; got " +
              std::to_string(devices));
}

std::string precision_of(const Device& device) {
  for (const Precision precision : {Precision::Bf16, Precision::Fp16, Precision::Tf32}) {
    if (supports(device, precision)) {
      return precision_names()[static_cast<std::size_t>(precision)];
    }
  }
  return "fp32";
}

/// The devices times a power of two, near what is usual.
int batch_for(const ModelGraph& graph, int devices) {
  if (!graph.tokens_per_sample) return kImagesPerDevice * devices;
  int batch = devices;
  while (batch * *graph.tokens_per_sample < kTokensInBatch && batch < 1 << 20) batch *= 2;
  return batch;
}

/// 1, 2, 4, ... and `whole` itself, as far as they divide it.
std::vector<int> degrees(int whole, int most) {
  std::vector<int> found;
  for (int degree = 1; degree <= std::min(whole, most); degree *= 2) {
    if (whole % degree == 0) found.push_back(degree);
  }
  const bool power = (whole & (whole - 1)) == 0;
  if (!power && whole <= most) found.push_back(whole);
  return found;
}

std::vector<StarterPlan> plans_for(const ModelGraph& graph, const Cluster& cluster, int devices) {
  const int batch = batch_for(graph, devices);
  const int modules = static_cast<int>(graph.modules.size());
  // Convolutions are not divided by tensors.
  const int widest = graph.tokens_per_sample ? cluster.devices_per_node : 1;
  std::vector<StarterPlan> plans;
  for (const int tensor : degrees(devices, widest)) {
    for (const int pipeline : degrees(devices / tensor, std::min(kMostRanks, modules))) {
      const int data = devices / tensor / pipeline;
      if (batch % data != 0) continue;
      const int replica = batch / data;
      for (const int size : {1, 2, 4, 8, 16, 32, 64}) {
        if (replica % size != 0 || (pipeline > 1 && replica / size < pipeline)) continue;
        for (const char* recompute : {"none", "selective", "full"}) {
          plans.push_back({tensor, pipeline, data, batch, size, recompute});
        }
      }
    }
  }
  // Of very many every so-manieth, so that all kinds are tried.
  if (plans.size() <= kMostPlans) return plans;
  std::vector<StarterPlan> some;
  for (std::size_t i = 0; i < kMostPlans; ++i) {
    some.push_back(plans[i * plans.size() / kMostPlans]);
  }
  return some;
}

struct Told {
  double step_time = 0, peak = 0, memory = 0;
  bool fits = false;
};

std::string tell(const ScenarioResult& result) {
  const Metrics& metrics = result.measurement.metrics;
  Told told{metrics.step_time.value(), 0, metrics.memory_capacity.value(), metrics.fits_in_memory};
  for (const DeviceMetrics& device : metrics.devices) {
    told.peak = std::max(told.peak, device.peak_memory.value());
  }
  std::string bytes(sizeof told, '\0');
  std::memcpy(bytes.data(), &told, sizeof told);
  return bytes;
}

/// What fits with room to spare comes first: allocators take more than tensors do.
bool is_better(const Told& a, const Told& b) {
  const auto is_roomy = [](const Told& told) {
    return told.fits && told.peak <= kMostMemory * told.memory;
  };
  if (is_roomy(a) != is_roomy(b)) return is_roomy(a);
  if (a.fits != b.fits) return a.fits;
  return is_roomy(a) ? a.step_time < b.step_time : a.peak < b.peak;
}

}  // namespace

Starter make_starter(const StarterQuestion& question, int processes) {
  const ModelGraph graph = model_of(question);
  const Cluster cluster = machine_of(question);
  Starter starter{.question = question,
                  .precision = precision_of(cluster.device),
                  .optimizer = graph.tokens_per_sample ? "adam" : "sgd-momentum",
                  .tokens_per_sample = graph.tokens_per_sample,
                  .nodes = nodes_for(cluster, question.devices)};
  const std::vector<StarterPlan> plans = plans_for(graph, cluster, question.devices);
  std::vector<std::optional<Told>> answers(plans.size());
  std::string problem;
  std::size_t next = 0;
  run_jobs({.next = [&]() -> std::optional<std::size_t> {
              return next < plans.size() ? std::optional(next++) : std::nullopt;
            },
            .work =
                [&](std::size_t job) {
                  Starter one = starter;
                  one.plan = plans[job];
                  const JsonValue document = parse_json(starter_text(one, ""), "interlock init");
                  return tell(run_scenario(load_scenarios(document).front(), false));
                },
            .done =
                [&](const JobResult& result) {
                  if (problem.empty()) problem = result.problem;
                  if (result.bytes.size() != sizeof(Told) || !result.problem.empty()) return;
                  std::memcpy(&answers[result.job].emplace(), result.bytes.data(), sizeof(Told));
                }},
           processes);
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!answers[i]) continue;
    ++starter.tried;
    if (!best || is_better(*answers[i], *answers[*best])) best = i;
  }
  if (!best) throw Error("no plan for " + question.model + " can be simulated: " + problem);
  starter.plan = plans[*best];
  starter.step_time = Seconds(answers[*best]->step_time);
  starter.peak_memory = Bytes(answers[*best]->peak);
  starter.memory = Bytes(answers[*best]->memory);
  starter.fits = answers[*best]->fits;
  return starter;
}

}  // namespace interlock
