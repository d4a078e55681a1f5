// Reads "partition", and cuts the model into stages as it says.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <numeric>
#include <string>

#include "scenarios/contract/contract.h"
#include "scenarios/load/loader.h"
#include "scenarios/simulate/run_scenario.h"
#include "sim/plan/stage_cost.h"

namespace interlock {
namespace {

constexpr int kMostModules = 1'000'000;
/// Evaluations of the search for a balanced partition that take some seconds.
constexpr double kMostCuts = 1e9;

/// Contiguous blocks of stages, one for each rank, whose busiest is as little busy as possible.
std::vector<int> contiguous_ranks(int ranks, int stages, const StageTime& time) {
  std::vector<Seconds> sums(1);
  for (int stage = 0; stage < stages; ++stage) {
    sums.push_back(sums.back() + time(stage, stage, stage + 1));
  }
  const Partition blocks = balanced_partition(
      stages, ranks, [&](int, int first, int last) { return sums[last] - sums[first]; });
  std::vector<int> rank_of_stage;
  for (int rank = 0; rank < ranks; ++rank) {
    const int length = blocks.boundaries[rank + 1] - blocks.boundaries[rank];
    rank_of_stage.insert(rank_of_stage.end(), length, rank);
  }
  return rank_of_stage;
}

Partition explicit_partition(const std::vector<int>& modules) {
  Partition partition{.boundaries = {0}};
  for (const int count : modules) {
    partition.boundaries.push_back(partition.boundaries.back() + count);
  }
  return partition;
}

}  // namespace

PartitionKeys read_partition(const std::optional<JsonNode>& node, Diagnostics& diagnostics) {
  PartitionKeys keys;
  if (!node) return keys;
  const Mistakes mistakes(diagnostics);
  if (node->value->kind == JsonValue::Kind::Array) {
    keys.kind = PartitionKeys::Kind::Explicit;
    for (std::size_t i = 0; i < node->value->items.size(); ++i) {
      const auto count = read_count(node->item(i), 1, kMostModules, diagnostics);
      keys.modules.push_back(count.value_or(1));
    }
  } else if (node->value->kind == JsonValue::Kind::String) {
    if (read_choice(*node, contract_names("", "partition"), diagnostics) == 1) {
      keys.kind = PartitionKeys::Kind::Uniform;
    }
  } else {
    report(diagnostics, *node,
           "expected \"balanced\", \"uniform\" or a list with the modules of each stage");
  }
  keys.valid = mistakes.none();
  return keys;
}

void check_partition(const PartitionKeys& keys, const JsonNode& node, const PartitionSize& size,
                     Diagnostics& diagnostics) {
  if (!keys.valid) return;
  const bool search = keys.kind == PartitionKeys::Kind::Balanced && size.parts < size.modules;
  const double blocks = search ? size.parts : size.lays_ranks ? size.ranks : 0;
  if (blocks * size.modules * size.modules > kMostCuts) {
    report(diagnostics, node,
           "balancing " + std::to_string(size.modules) + " modules over " +
               std::to_string(search ? size.parts : size.ranks) +
               (search ? " stages is too large a search; expected \"uniform\" or a list with the "
                         "modules of each stage"
                       : " ranks is too large a search; expected \"placement\" to be given"));
  }
  if (keys.kind != PartitionKeys::Kind::Explicit) return;
  if (keys.modules.size() != static_cast<std::size_t>(size.parts)) {
    report(diagnostics, node,
           "gives the modules of " + std::to_string(keys.modules.size()) +
               " stages; expected those of " + std::to_string(size.parts));
    return;
  }
  const auto sum = std::accumulate(keys.modules.begin(), keys.modules.end(), std::int64_t{0});
  if (sum != size.modules) {
    report(diagnostics, node,
           "places " + std::to_string(sum) + " modules; expected all " +
               std::to_string(size.modules) + " of the model");
  }
}

void choose_partition(Scenario& scenario, const PartitionKeys& keys, int stages) {
  const int modules = static_cast<int>(scenario.graph.modules.size());
  const int parts = parts_of(scenario.strategy, stages);
  const bool search = keys.kind == PartitionKeys::Kind::Balanced && parts < modules;
  if (keys.kind == PartitionKeys::Kind::Explicit) {
    scenario.partition = explicit_partition(keys.modules);
  } else if (!search) {
    scenario.partition = uniform_partition(modules, parts);
  }
  if (!search && !scenario.rank_of_stage.empty()) return;
  const bool list = scenario.schedule.kind->sends_lists;
  const auto roles = make_roles(scenario.strategy, stages, list);
  const auto time_of_graph = [&](const ModelGraph& graph, int rank) {
    return busy_time(price_modules(graph, price_inputs(scenario, rank)), scenario.strategy, roles,
                     scenario.schedule.update_every);
  };
  StageTime time = time_of_graph(scenario.graph, 0);
  if (!scenario.rank_layouts.empty()) {
    std::vector<StageTime> times;  // by rank
    for (std::size_t rank = 0; rank < scenario.rank_layouts.size(); ++rank) {
      times.push_back(time_of_graph(*scenario.rank_layouts[rank].graph, static_cast<int>(rank)));
    }
    time = [&scenario, times](int stage, int first, int last) {
      return times[scenario.rank_of_stage[stage]](stage, first, last);
    };
  }
  if (scenario.variation && !scenario.variation->speeds.empty() &&
      !scenario.rank_of_stage.empty()) {
    time = [&scenario, alike = std::move(time)](int stage, int first, int last) {
      const int rank = scenario.rank_of_stage[stage];
      return alike(stage, first, last) / scenario.variation->speeds[rank];
    };
  }
  if (search) scenario.partition = balanced_partition(modules, parts, time);
  if (scenario.rank_of_stage.empty()) {
    scenario.rank_of_stage = contiguous_ranks(scenario.ranks, stages, time);
  }
}

}  // namespace interlock
