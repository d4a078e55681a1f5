// Cuts a model into stages by what its modules cost.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/plan/choices.h"
#include "scenarios/plan/lower_plan.h"
#include "sim/plan/stage_cost.h"

namespace interlock {
namespace {

/// Returns contiguous blocks of stages, one for each rank, whose busiest is as little busy as
/// possible.
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

/// Returns how long a stage of given modules keeps its rank busy for a micro-batch, on the device
/// that it lies on.
StageTime stage_time(const Question& question) {
  const bool list = question.schedule.kind->sends_lists;
  const auto roles = make_roles(question.strategy, question.stages, list);
  const auto time_of_graph = [&](const ModelGraph& graph, int rank) {
    const std::vector<StageCost> modules = price_modules(graph, price_inputs(question, rank));
    return busy_with(question.stage_recompute, modules,
                     busy_time(modules, question.strategy, roles, question.schedule.update_every));
  };
  const std::vector<int>& ranks = question.placement;
  StageTime time;
  if (question.rank_layouts.empty()) {
    time = time_of_graph(question.graph, 0);
  } else {
    std::vector<StageTime> times;  // by rank
    for (std::size_t rank = 0; rank < question.rank_layouts.size(); ++rank) {
      times.push_back(time_of_graph(*question.rank_layouts[rank].graph, static_cast<int>(rank)));
    }
    time = [ranks, times](int stage, int first, int last) {
      return times[ranks[stage]](stage, first, last);
    };
  }
  if (!question.variation || question.variation->speeds.empty() || ranks.empty()) return time;
  return [ranks, speeds = question.variation->speeds, alike = std::move(time)](int stage, int first,
                                                                               int last) {
    return alike(stage, first, last) / speeds[ranks[stage]];
  };
}

}  // namespace

CutModel cut_model(const Question& question) {
  const PartitionRule& rule = question.partition;
  const int modules = static_cast<int>(question.graph.modules.size());
  const int parts = parts_of(question.strategy, question.stages);
  const bool search = rule.kind == PartitionRule::Kind::Balanced && parts < modules;
  CutModel cut{.partition = {}, .rank_of_stage = question.placement};
  if (rule.kind == PartitionRule::Kind::Explicit) {
    cut.partition = explicit_partition(rule.modules);
  } else if (!search) {
    cut.partition = uniform_partition(modules, parts);
  }
  if (!search && !cut.rank_of_stage.empty()) return cut;
  const StageTime time = stage_time(question);
  if (search) cut.partition = balanced_partition(modules, parts, time);
  if (cut.rank_of_stage.empty()) {
    cut.rank_of_stage = contiguous_ranks(question.ranks, question.stages, time);
  }
  return cut;
}

}  // namespace interlock
