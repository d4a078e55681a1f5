// Which loss trains which stage: the roles of all stages under a strategy.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/schedules/strategy.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/error.h"

namespace interlock {

namespace {

/// Returns whether the gradient of `loss` goes down as far as `stage` under Interlocking.
bool reaches(const Strategy& strategy, int loss, int stage) {
  return stage <= loss && loss - stage < reach_of(strategy, loss);
}

/// Returns the last stage of the block of `length` stages in which `stage` is.
int last_of_block(int stage, int length) { return stage - stage % length + length - 1; }

/// Returns the furthest loss whose gradient reaches `stage`.
int furthest_loss(const Strategy& strategy, int stages, int stage) {
  switch (strategy.kind) {
    case StrategyKind::Global:
      return stages - 1;
    case StrategyKind::Local:
    case StrategyKind::Greedy:
    case StrategyKind::ForwardForward:
      return stage;
    case StrategyKind::Interlocking: {
      if (strategy.n_of_losses.empty()) {
        const int own = last_of_block(stage, strategy.module_stages);
        return std::min(own + (strategy.n_wise - 1) * strategy.module_stages, stages - 1);
      }
      int loss = stages - 1;
      while (!reaches(strategy, loss, stage)) --loss;  // its own does
      return loss;
    }
    case StrategyKind::Chunked:
      return last_of_block(stage, stages / strategy.chunks);
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

/// Returns the nearest loss that may train `stage`: the furthest one, unless gradients are added
/// up.
int nearest_loss(const Strategy& strategy, int stages, int stage, int furthest) {
  const bool adds = strategy.gradient != GradientMode::Furthest;
  if (adds && strategy.kind == StrategyKind::Interlocking) return stage;
  if (adds && strategy.kind == StrategyKind::Overlapping && !strategy.recompute_shared_forward) {
    return std::max(stage, std::min(1, stages - 1));  // no block ends on the first part
  }
  return furthest;
}

/// Returns the losses that train each stage, in order; the furthest one never decreases with the
/// stage.
std::vector<std::vector<int>> losses_of_stages(const Strategy& strategy, int stages) {
  std::vector<std::vector<int>> losses(stages);
  for (int stage = 0; stage < stages; ++stage) {
    const int furthest = furthest_loss(strategy, stages, stage);
    for (int loss = nearest_loss(strategy, stages, stage, furthest); loss <= furthest; ++loss) {
      const bool passes_by =
          strategy.kind == StrategyKind::Interlocking && !reaches(strategy, loss, stage);
      if (!passes_by) losses[stage].push_back(loss);
    }
  }
  return losses;
}

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

/// Gives every stage a head, which all micro-batches train, and by which it is trained where no
/// gradient comes down: by all but each `every`th.
void leave_alone(int every, std::vector<StageRole>& roles) {
  for (std::size_t stage = 0; stage < roles.size(); ++stage) {
    StageRole& role = roles[stage];
    role.head = stage + 1 < roles.size();
    role.gradient_every = every;
    role.alone = {
        {.head = role.head, .traversals = {{.loss = static_cast<int>(stage), .weights = true}}}};
  }
}

std::string interlocking_name(const Strategy& strategy) {
  if (strategy.sought) return "interlocking";
  if (strategy.n_of_losses.empty()) {
    const std::string name =
        strategy.n_wise == 2 ? "pairwise" : std::to_string(strategy.n_wise) + "-wise";
    const int length = strategy.module_stages;
    return length == 1 ? name : name + " of " + std::to_string(length) + "-stage modules";
  }
  std::string name;
  for (const int n : strategy.n_of_losses) name += std::to_string(n) + "-";
  return name + "wise";
}

constexpr int kNoStage = 1 << 30;

/// Returns the lowest stage to which the gradient of each loss goes: the lowest that it trains, or
/// with `all` that it reaches; kNoStage if there is none.
std::vector<int> lowest_stages(const Strategy& strategy,
                               const std::vector<std::vector<int>>& trained_by, bool all) {
  const int stages = static_cast<int>(trained_by.size());
  std::vector<int> lowest(stages, kNoStage);
  for (int stage = stages - 1; stage >= 0; --stage) {
    for (const int loss : trained_by[stage]) lowest[loss] = stage;
  }
  for (int loss = 0; all && loss < stages; ++loss) {
    const int reach = reach_of(strategy, loss);
    if (reach > 0) lowest[loss] = std::max(0, loss - reach + 1);
  }
  return lowest;
}

}  // namespace

void set_reach(Strategy& strategy, std::vector<int> n_of_losses) {
  const int most = static_cast<int>(n_of_losses.size());
  const int last = std::min(n_of_losses.back(), most);
  bool alike = true;
  for (int loss = 0; loss < most; ++loss) {
    n_of_losses[loss] = std::min(n_of_losses[loss], loss + 1);
    alike = alike && n_of_losses[loss] == std::min(last, loss + 1);
  }
  strategy.n_wise = last;
  strategy.n_of_losses = alike ? std::vector<int>{} : std::move(n_of_losses);
}

int reach_of(const Strategy& strategy, int stage) {
  if (!strategy.n_of_losses.empty()) return strategy.n_of_losses[stage];
  const int length = strategy.module_stages;
  return stage == last_of_block(stage, length) ? strategy.n_wise * length : 0;
}

std::vector<int> furthest_losses(const Strategy& strategy, int stages) {
  std::vector<int> losses(stages);
  for (int stage = 0; stage < stages; ++stage) {
    losses[stage] = furthest_loss(strategy, stages, stage);
  }
  return losses;
}

std::vector<StageRole> make_roles(const Strategy& strategy, int stages, bool list_form) {
  CHECK(strategy.n_of_losses.empty() || static_cast<int>(strategy.n_of_losses.size()) == stages,
        "each loss has its N");
  CHECK(stages >= 1, "a strategy needs a stage");
  if (strategy.kind == StrategyKind::BackLink) return backlink_roles(stages);
  if (strategy.kind == StrategyKind::Inference) return std::vector<StageRole>(stages);
  const std::vector<std::vector<int>> trained_by = losses_of_stages(strategy, stages);
  const bool all = strategy.all_heads && strategy.kind == StrategyKind::Interlocking;
  const std::vector<int> lowest = lowest_stages(strategy, trained_by, all);
  std::vector<int> losses;  // whose gradients go anywhere
  for (int loss = 0; loss < stages; ++loss) {
    if (lowest[loss] != kNoStage) losses.push_back(loss);
  }

  std::vector<StageRole> roles(stages);
  for (int stage = 0; stage < stages; ++stage) {
    StageRole& role = roles[stage];
    const int furthest = trained_by[stage].back();
    role.summed_gradients = static_cast<int>(trained_by[stage].size()) - 1;
    role.runs_next_part =
        strategy.kind == StrategyKind::Overlapping && strategy.recompute_shared_forward;
    auto loss = std::lower_bound(losses.begin(), losses.end(), stage);
    const bool own_loss_in_module = strategy.kind == StrategyKind::ForwardForward;
    role.head = stage < stages - 1 && loss != losses.end() && *loss == stage && !own_loss_in_module;
    for (; loss != losses.end() && *loss <= furthest; ++loss) {
      if (lowest[*loss] > stage) continue;
      const bool below = lowest[*loss] < stage;
      // With all heads the first stage gets gradients that it can only drop; its own head's is not
      // even made, except by the list form.
      const bool dropped = all && (*loss > stage || list_form);
      const bool weights = *loss == furthest;
      if (below || weights || dropped) {
        role.traversals.push_back({*loss, weights, below});
      } else if (role.summed_gradients > 0) {
        role.only_added.push_back(*loss);
      }
    }
  }
  if (strategy.gradient_every > 1) leave_alone(strategy.gradient_every, roles);
  return roles;
}

std::vector<int> added_before(const StageRole& role, int stage, int loss) {
  int nearest = stage + 1;  // its own head's is there
  for (const Traversal& traversal : role.traversals) {
    if (traversal.loss < loss) nearest = std::max(nearest, traversal.loss + 1);
  }
  std::vector<int> losses;
  for (const int added : role.only_added) {
    if (nearest <= added && added < loss) losses.push_back(added);
  }
  return losses;
}

namespace {

void shift_losses(StageRole& role, int stages) {
  for (Traversal& traversal : role.traversals) traversal.loss += stages;
  for (int& loss : role.only_added) loss += stages;
  for (StageRole& alone : role.alone) shift_losses(alone, stages);
}

}  // namespace

std::vector<StageRole> roles_of_copies(const std::vector<StageRole>& roles, int copies) {
  const int stages = static_cast<int>(roles.size());
  std::vector<StageRole> all;
  for (int copy = 0; copy < copies; ++copy) {
    for (StageRole role : roles) {
      shift_losses(role, copy * stages);
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

const char* name_of(Trains trains) {
  if (trains == Trains::Any) return "all";
  if (trains == Trains::Global) return "global";
  return trains == Trains::Local ? "local" : "local, interlocking";
}

std::string name_of(const Strategy& strategy) {
  switch (strategy.kind) {
    case StrategyKind::Global:
      return "global";
    case StrategyKind::Local:
      return "local";
    case StrategyKind::Interlocking:
      return interlocking_name(strategy);
    case StrategyKind::Greedy:
      return "greedy";
    case StrategyKind::Chunked:
      return std::to_string(strategy.chunks) + " chunks";
    case StrategyKind::Overlapping:
      return "overlapping";
    case StrategyKind::ForwardForward:
      return strategy.module_gradients ? "forward-forward with gradients in modules"
                                       : "forward-forward";
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

std::string crossings_of(const Strategy& strategy) {
  static const std::array<const char*, 4> formats = {"", "fp8", "int8", "int4"};
  const auto in_format = [&](const char* what, SentFormat format) {
    if (format == SentFormat::Computed) return std::string();
    return std::string(", ") + what + " in " + formats[static_cast<std::size_t>(format)];
  };
  const int every = strategy.gradient_every;
  return (every > 1 ? ", 1 gradient in " + std::to_string(every) : "") +
         in_format("activations", strategy.activation_format) +
         in_format("gradients", strategy.gradient_format) +
         (strategy.noise == NoiseSchedule::Cosine ? ", cosine noise" : "");
}

}  // namespace interlock
