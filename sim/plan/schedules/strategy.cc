// Which loss trains which stage: the roles of all stages under a strategy.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/schedules/strategy.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"

namespace interlock {

namespace {

/// Returns the furthest loss whose gradient reaches `stage`.
int furthest_loss(const Strategy& strategy, int stages, int stage) {
  switch (strategy.kind) {
    case StrategyKind::Global:
      return stages - 1;
    case StrategyKind::Local:
    case StrategyKind::Greedy:
    case StrategyKind::ForwardForward:
      return stage;
    case StrategyKind::Interlocking:
      return std::min(stage + strategy.n_wise - 1, stages - 1);
    case StrategyKind::Chunked: {
      const int length = stages / strategy.chunks;
      return stage - stage % length + length - 1;
    }
    case StrategyKind::Overlapping:
      return strategy.recompute_shared_forward ? stage : std::min(stage + 1, stages - 1);
    case StrategyKind::BackLink:
      return std::min(stage + 1, stages - 1);
    case StrategyKind::Tree:
    case StrategyKind::Independent:
      return stage;
    case StrategyKind::Inference:
      break;
  }
  return stages - 1;
}

/// Returns the nearest loss that trains `stage`: the furthest one, unless gradients are added up.
int nearest_loss(const Strategy& strategy, int stages, int stage) {
  const bool adds = strategy.gradient != GradientMode::Furthest;
  if (adds && strategy.kind == StrategyKind::Interlocking) return stage;
  if (adds && strategy.kind == StrategyKind::Overlapping && !strategy.recompute_shared_forward) {
    return std::max(stage, std::min(1, stages - 1));  // no block ends on the first part
  }
  return furthest_loss(strategy, stages, stage);
}

/// The losses that train a stage: a range whose ends never decrease with the stage.
struct LossRange {
  int nearest = 0, furthest = 0;
};

/// Returns the roles under BackLink: every stage has a loss that goes back through all of it and on
/// to the stage below, which takes it through its last modules only. Both losses make weight
/// gradients there, which add up.
std::vector<StageRole> backlink_roles(int stages) {
  std::vector<StageRole> roles(stages);
  for (int stage = 0; stage < stages; ++stage) {
    StageRole& role = roles[stage];
    role.traversals.push_back({.loss = stage, .weights = true, .to_previous = stage > 0});
    role.head = stage < stages - 1;
    if (role.head) role.traversals.push_back({.loss = stage + 1, .weights = true, .partial = true});
  }
  return roles;
}

/// Returns the losses, in order, whose gradients some stage uses; with `all` every loss.
std::vector<int> losses_that_train(const std::vector<LossRange>& trains, bool all) {
  std::vector<int> losses;
  for (const LossRange& range : trains) {
    int loss = losses.empty() ? 0 : losses.back() + 1;
    if (!all) loss = std::max(loss, range.nearest);
    for (; loss <= range.furthest; ++loss) losses.push_back(loss);
  }
  return losses;
}

}  // namespace

std::vector<StageRole> make_roles(const Strategy& strategy, int stages, bool list_form) {
  CHECK(stages >= 1, "a strategy needs a stage");
  if (strategy.kind == StrategyKind::BackLink) return backlink_roles(stages);
  if (strategy.kind == StrategyKind::Inference) return std::vector<StageRole>(stages);
  std::vector<LossRange> trains;
  trains.reserve(stages);
  for (int stage = 0; stage < stages; ++stage) {
    trains.push_back(
        {nearest_loss(strategy, stages, stage), furthest_loss(strategy, stages, stage)});
  }
  const bool all = strategy.all_heads && strategy.kind == StrategyKind::Interlocking;
  const std::vector<int> losses = losses_that_train(trains, all);

  // A gradient goes down from its loss to every stage from which that loss is reachable. The reach
  // never decreases, so the stage below needs it if and only if its own reach is as far.
  std::vector<StageRole> roles(stages);
  for (int stage = 0; stage < stages; ++stage) {
    StageRole& role = roles[stage];
    role.summed_gradients = trains[stage].furthest - trains[stage].nearest;
    role.runs_next_part =
        strategy.kind == StrategyKind::Overlapping && strategy.recompute_shared_forward;
    auto loss = std::lower_bound(losses.begin(), losses.end(), stage);
    const bool own_loss_in_module = strategy.kind == StrategyKind::ForwardForward;
    role.head = stage < stages - 1 && loss != losses.end() && *loss == stage && !own_loss_in_module;
    for (; loss != losses.end() && *loss <= trains[stage].furthest; ++loss) {
      const bool below = stage > 0 && *loss <= trains[stage - 1].furthest;
      const bool trains_here = *loss >= trains[stage].nearest;
      // With all heads the first stage gets gradients that it can only drop; its own head's is not
      // even made, except by the list form.
      const bool dropped = all && (*loss > stage || list_form);
      const bool weights = *loss == trains[stage].furthest;
      if (below || weights || dropped) {
        role.traversals.push_back({*loss, weights, below});
      } else if (trains_here) {
        role.only_added.push_back(*loss);
      }
    }
  }
  return roles;
}

std::vector<StageRole> roles_of_copies(const std::vector<StageRole>& roles, int copies) {
  const int stages = static_cast<int>(roles.size());
  std::vector<StageRole> all;
  for (int copy = 0; copy < copies; ++copy) {
    for (StageRole role : roles) {
      for (Traversal& traversal : role.traversals) traversal.loss += copy * stages;
      for (int& loss : role.only_added) loss += copy * stages;
      all.push_back(std::move(role));
    }
  }
  return all;
}

int stage_before(const Strategy& strategy, int stage) {
  if (stage == 0 || strategy.kind == StrategyKind::Independent) return -1;
  return strategy.kind == StrategyKind::Tree ? (stage - 1) / strategy.arity : stage - 1;
}

std::vector<int> stages_after(const Strategy& strategy, int stage, int stages) {
  if (strategy.kind == StrategyKind::Independent) return {};
  const bool tree = strategy.kind == StrategyKind::Tree;
  const std::int64_t first = tree ? std::int64_t{strategy.arity} * stage + 1 : stage + 1;
  const std::int64_t end = std::min<std::int64_t>(first + (tree ? strategy.arity : 1), stages);
  std::vector<int> after;
  for (std::int64_t next = first; next < end; ++next) after.push_back(static_cast<int>(next));
  return after;
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
    case StrategyKind::ForwardForward:
      return "forward-forward";
    case StrategyKind::BackLink:
      return "backlink";
    case StrategyKind::Tree:
      return "tree";
    case StrategyKind::Independent:
      return "independent";
    case StrategyKind::Inference:
      return "inference";
  }
  return "";
}

}  // namespace interlock
