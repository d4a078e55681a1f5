// Which loss trains which stage: the roles of all stages under a strategy.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/strategy.h"

#include <algorithm>

#include "base/error.h"

namespace interlock {

namespace {

/// The furthest loss whose gradient reaches `stage`.
int furthest_loss(const Strategy& strategy, int stages, int stage) {
  switch (strategy.kind) {
    case StrategyKind::Global:
      return stages - 1;
    case StrategyKind::Local:
    case StrategyKind::Greedy:
      return stage;
    case StrategyKind::Interlocking:
      return std::min(stage + strategy.n_wise - 1, stages - 1);
    case StrategyKind::Chunked: {
      const int length = stages / strategy.chunks;
      return stage - stage % length + length - 1;
    }
    case StrategyKind::Overlapping:
      return strategy.recompute_shared_forward ? stage : std::min(stage + 1, stages - 1);
  }
  return stages - 1;
}

/// The nearest loss that trains `stage`: the furthest one, unless gradients are added up.
int nearest_loss(const Strategy& strategy, int stages, int stage) {
  const bool adds = strategy.gradient != GradientMode::Furthest;
  if (adds && strategy.kind == StrategyKind::Interlocking) return stage;
  if (adds && strategy.kind == StrategyKind::Overlapping && !strategy.recompute_shared_forward) {
    return std::max(stage, std::min(1, stages - 1));  // no block ends on the first part
  }
  return furthest_loss(strategy, stages, stage);
}

/// The losses that train a stage are a range, because furthest_loss never decreases with the stage.
struct LossRange {
  int nearest = 0, furthest = 0;
  bool holds(int loss) const { return nearest <= loss && loss <= furthest; }
};

/// Whether the gradient of `loss` is used in a stage below `stage`.
bool needed_below(const std::vector<LossRange>& trains, int stage, int loss) {
  for (int below = stage - 1; below >= 0 && trains[below].furthest >= loss; --below) {
    if (trains[below].holds(loss)) return true;
  }
  return false;
}

}  // namespace

std::vector<StageRole> make_roles(const Strategy& strategy, int stages, bool list_form) {
  CHECK(stages >= 1, "a strategy needs a stage");
  std::vector<LossRange> trains;
  std::vector<bool> trained_by(stages, false);  // by loss: some weights use its gradient
  for (int stage = 0; stage < stages; ++stage) {
    trains.push_back(
        {nearest_loss(strategy, stages, stage), furthest_loss(strategy, stages, stage)});
    for (int loss = trains[stage].nearest; loss <= trains[stage].furthest; ++loss) {
      trained_by[loss] = true;
    }
  }
  const bool all = strategy.all_heads && strategy.kind == StrategyKind::Interlocking;

  std::vector<StageRole> roles(stages);
  for (int stage = 0; stage < stages; ++stage) {
    StageRole& role = roles[stage];
    role.head = stage < stages - 1 && (trained_by[stage] || all);
    role.summed_gradients = trains[stage].furthest - trains[stage].nearest;
    for (int loss = stage; loss <= trains[stage].furthest; ++loss) {
      // Without pruning, a gradient goes to every stage that could use it as its furthest or
      // nearer.
      const bool below =
          all ? stage > 0 && loss <= trains[stage - 1].furthest : needed_below(trains, stage, loss);
      const bool weights = loss == trains[stage].furthest;
      const bool adds = trains[stage].holds(loss);
      const bool wasted = all && (list_form || loss > stage);
      if (weights || below || adds || wasted) role.traversals.push_back({loss, weights, below});
    }
    role.runs_next_part =
        strategy.kind == StrategyKind::Overlapping && strategy.recompute_shared_forward;
  }
  return roles;
}

int parts_of(const Strategy& strategy, int stages) {
  const bool shared =
      strategy.kind == StrategyKind::Overlapping && strategy.recompute_shared_forward;
  return shared ? stages + 1 : stages;
}

std::string name_of(const Strategy& strategy) {
  switch (strategy.kind) {
    case StrategyKind::Global:
      return "global";
    case StrategyKind::Local:
      return "local";
    case StrategyKind::Interlocking:
      return strategy.n_wise == 2 ? "pairwise" : std::to_string(strategy.n_wise) + "-wise";
    case StrategyKind::Greedy:
      return "greedy";
    case StrategyKind::Chunked:
      return std::to_string(strategy.chunks) + " chunks";
    case StrategyKind::Overlapping:
      return "overlapping";
  }
  return "";
}

}  // namespace interlock
