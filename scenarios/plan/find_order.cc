// The search behind "auto": which schedules compete, and what judges them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "scenarios/plan/choices.h"
#include "scenarios/plan/lower_plan.h"
#include "scenarios/plan/step_time.h"
#include "sim/lower/list_inputs.h"
#include "sim/measure/quick_look.h"
#include "sim/plan/orders/auto_schedule.h"

namespace interlock {
namespace {

// A search of this size takes a few seconds.
constexpr double kOpsOfSearch = 1e7;
constexpr double kLeastLooks = 10, kMostLooks = 1000;
constexpr int kStepsOfLook = 4;             // and more where a step has few micro-batches
constexpr std::size_t kLooksAtFlushed = 2;  // the best, and the best hand-made one

bool is_v(const Plan& plan, int stage) {
  const int turn = stage / plan.question.layout.ranks(),
            place = stage % plan.question.layout.ranks();
  const int rank = turn % 2 == 0 ? place : plan.question.layout.ranks() - 1 - place;
  return plan.rank_of_stage[stage] == rank;
}

/// Says that the stages of a plan lie as a schedule wants them.
bool lies_as(const Plan& plan, const ScheduleEntry& entry) {
  const int stages = static_cast<int>(plan.rank_of_stage.size());
  const auto all = [&](auto&& holds) {
    for (int stage = 0; stage < stages; ++stage) {
      if (!holds(stage)) return false;
    }
    return stages % plan.question.layout.ranks() == 0;
  };
  const auto in_loops = [&](int s) {
    return plan.rank_of_stage[s] == s % plan.question.layout.ranks();
  };
  switch (entry.layout) {
    case StageLayout::Any:
      return true;
    case StageLayout::OneEach:
      return stages == plan.question.layout.ranks() && all(in_loops);
    case StageLayout::Loop:
      return all(in_loops);
    case StageLayout::V:
      return stages % (entry.chunks * plan.question.layout.ranks()) == 0 &&
             all([&](int s) { return is_v(plan, s); });
    case StageLayout::Mirrored:
    case StageLayout::MirroredV:
    case StageLayout::Ring:
    case StageLayout::Helix:
      return false;
  }
  return false;
}

/// Says that a schedule trains as "auto" does: all micro-batches of a step make one update.
bool competes(const Plan& plan, const ScheduleEntry& entry) {
  const bool global = plan.question.training().strategy.kind == StrategyKind::Global;
  if (entry.order != OrderSource::Function) return false;
  // Another way to send gradients, or eager by another name.
  if (entry.sends_lists || entry.trains == Trains::Local) return false;
  if (entry.slices) return false;
  // Elsewhere others are shorter, or leaner, and a search of few looks would miss them for it.
  if (entry.for_hosts && plan.question.training().offload.activations == 0) return false;
  if (entry.global() != global || entry.stash != StashMode::Kept) return false;
  if (global && !entry.parts_steps()) return false;
  if (!lies_as(plan, entry)) return false;
  const int stages = static_cast<int>(plan.rank_of_stage.size());
  return entry.problem == nullptr || entry
                                         .problem({plan.question.layout.ranks(), stages,
                                                   plan.micro_batches, plan.schedule.update_every})
                                         .empty();
}

}  // namespace

std::vector<SchedulePolicy> hand_made_schedules(const Plan& plan) {
  std::vector<SchedulePolicy> policies;
  for (const ScheduleEntry& entry : schedule_catalogue()) {
    if (!competes(plan, entry)) continue;
    SchedulePolicy policy = plan.schedule;
    policy.kind = &entry;
    policy.chunks = static_cast<int>(plan.rank_of_stage.size()) / plan.question.layout.ranks();
    policy.split_backward = entry.split_backward;
    policies.push_back(policy);
    if (!entry.other_backward.empty() || (entry.flushes && entry.split_backward)) continue;
    policies.push_back(policy);
    policies.back().split_backward = !policy.split_backward;
  }
  return policies;
}

namespace {

/// Returns the seconds of the busiest rank for one step: no step is shorter.
double busiest(const ListInputs& list) {
  std::vector<double> busy(list.memory.size(), 0);
  for (std::size_t stage = 0; stage < list.ops.size(); ++stage) {
    for (const ListOp& op : list.ops[stage]) {
      const int updates = list.micro_batches / list.update_every;
      const int times = op.kind == OpKind::U ? updates : list.micro_batches;
      busy[list.rank_of_stage[stage]] += op.time * times;
    }
  }
  return *std::max_element(busy.begin(), busy.end());
}

/// A plan that takes one schedule after the other.
struct Trial {
  Plan plan;
  LowerInputs inputs;
};

/// Returns a program of a few steps of a schedule, without contention.
Program program_of(Trial& trial, const SchedulePolicy& policy) {
  trial.plan.schedule = policy;
  const int stages = static_cast<int>(trial.plan.rank_of_stage.size());
  const int steps = kStepsOfLook + 2 * stages / trial.plan.micro_batches;
  Program program = lower_plan(trial.plan, trial.inputs, steps);
  share_no_links(program);
  return program;
}

ScheduleJudge judge_of(const Plan& plan, const LowerInputs& inputs) {
  const auto trial = std::make_shared<Trial>(Trial{plan, inputs});
  return {
      [trial](const SchedulePolicy& policy) { return quick_step_time(program_of(*trial, policy)); },
      [trial](const SchedulePolicy& policy) { return quick_peaks(program_of(*trial, policy)); }};
}

/// Returns the hand-made schedules of one fixed order a rank, as orders whose ops can be moved.
std::vector<SchedulePolicy> orders_of(const std::vector<SchedulePolicy>& policies,
                                      const ScheduleInputs& shape) {
  std::vector<SchedulePolicy> orders;
  for (const SchedulePolicy& policy : policies) {
    ScheduleInputs inputs = shape;
    inputs.policy = policy;
    const Schedule schedule = make_schedule(inputs);
    std::vector<std::vector<Op>> order;
    for (const auto& sequences : schedule.ranks) {
      if (sequences.size() == 1) order.push_back(expand(sequences.front()));
    }
    if (order.size() < schedule.ranks.size()) continue;
    orders.push_back(policy);
    orders.back().kind = &schedule_named("auto");
    orders.back().order = std::make_shared<const std::vector<std::vector<Op>>>(std::move(order));
  }
  return orders;
}

/// Returns the bytes of each simulated rank: those that the schedule may take, or of the smallest
/// device for which the rank stands.
std::vector<double> capacities(const Plan& plan) {
  const Mesh& mesh = simulated_mesh(plan);
  std::vector<double> bytes;
  for (const Coordinates& rank : simulated_ranks(mesh, plan.unfolded)) {
    bytes.push_back(plan.schedule.memory > Bytes(0) ? plan.schedule.memory.value() : kInfinity);
    if (plan.schedule.memory > Bytes(0)) continue;
    for (const Coordinates& by : folded_ranks(mesh, plan.unfolded)) {
      const int device = device_of(mesh, shifted(mesh, rank, by));
      const Bytes own = machine_of(plan.question.cluster, device).device.memory;
      bytes.back() = std::min(bytes.back(), own.value());
    }
  }
  return bytes;
}

SearchInputs search_inputs(const Plan& plan, const LowerInputs& inputs) {
  const std::vector<double> capacity = capacities(plan);
  SearchInputs search{.candidates = hand_made_schedules(plan),
                      .own = plan.schedule,
                      .capacity = capacity,
                      .seed = plan.question.simulation.seed};
  ScheduleInputs shape{.stages = static_cast<int>(plan.rank_of_stage.size()),
                       .micro_batches = plan.micro_batches,
                       .rank_of_stage = plan.rank_of_stage,
                       .roles = inputs.roles,
                       .policy = plan.schedule};
  for (const bool split : {true, false}) {
    shape.policy.split_backward = split;
    search.lists.push_back(list_inputs(inputs, shape, capacity));
  }
  search.bound = busiest(search.lists.back());
  const double ops = 3.0 * shape.stages * shape.micro_batches;
  search.evaluations = plan.schedule.evaluations.value_or(
      static_cast<int>(std::clamp(kOpsOfSearch / ops, kLeastLooks, kMostLooks)));
  if (plan.question.training().strategy.readout_every > 0) {
    search.lists.clear();  // readouts travel at micro-batches that one step does not show
  } else if (plan.question.training().strategy.kind == StrategyKind::Global) {
    search.starts = orders_of(search.candidates, shape);
    // Updates come at the end of the step, those of a rank together.
    for (ListInputs& list : search.lists) {
      for (std::vector<ListOp>& ops_of_stage : list.ops) ops_of_stage.pop_back();
    }
  }
  return search;
}

/// Says that each device of a step has room for its peak, or that each peak is within `limit` where
/// there is one.
bool fits(const StepEstimate& step, Bytes limit) {
  const auto& devices = step.metrics.devices;
  return std::all_of(devices.begin(), devices.end(), [&](const DeviceMetrics& device) {
    const Bytes most = limit > Bytes(0) ? limit : device.memory_capacity.value_or(Bytes(kInfinity));
    return device.peak_memory <= most;
  });
}

[[noreturn]] void refuse(const Plan& plan, const std::vector<double>& capacities, double least) {
  const double capacity = *std::max_element(capacities.begin(), capacities.end());
  const std::string leanest = format(Bytes(least));
  const std::string start = plan.question.file + ": " + plan.question.name +
                            ": /training/schedule: no order of work was found that fits into " +
                            format(Bytes(capacity)) + " a device";
  if (plan.schedule.memory > Bytes(0)) {
    throw Error(start + "; expected \"memory\" of at least " + leanest +
                ", which the leanest one takes");
  }
  throw Error(start + ": the leanest one takes " + leanest +
              "; expected more devices, smaller micro-batches or \"recompute\"");
}

}  // namespace

SchedulePolicy find_order(const LaidOut& laid_out) {
  Plan plan = laid_out.draft;
  plan.unfolded = kFolded;  // an order is one of ranks, which all replicas have
  const LowerInputs inputs = lower_inputs(plan);
  const SearchInputs search = search_inputs(plan, inputs);
  const FoundSchedules found = find_schedules(search, judge_of(plan, inputs));
  // The judge knows no contention and saw only a few steps; the last word has a full simulation.
  Plan trial = plan;
  std::optional<SchedulePolicy> best;
  Seconds best_time(kInfinity);
  double least = found.least_memory;
  std::size_t looks = 0;
  for (const SchedulePolicy& policy : found.fitting) {
    trial.schedule = policy;
    fold(trial);
    const StepEstimate step = estimate_step(trial, Grade::Simulation);
    const double peak = step.memory.value();
    least = std::max(least, peak);
    if (!fits(step, plan.schedule.memory)) continue;
    if (step.time < best_time) {
      best_time = step.time;
      best = policy;
    }
    const bool certain = plan.question.training().strategy.kind == StrategyKind::Global;
    if (++looks >= kLooksAtFlushed && certain && !step.shares_links) break;
  }
  if (!best) refuse(plan, search.capacity, least);
  return *best;
}

}  // namespace interlock
