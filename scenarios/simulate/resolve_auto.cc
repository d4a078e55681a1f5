// The search behind "auto": which schedules compete, and what judges them.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/simulate/resolve_auto.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "scenarios/simulate/run_scenario.h"
#include "sim/lower/list_inputs.h"
#include "sim/measure/quick_look.h"
#include "sim/plan/orders/auto_schedule.h"

namespace interlock {
namespace {

// What a search takes a few seconds for.
constexpr double kOpsOfSearch = 1e7;
constexpr double kLeastLooks = 10, kMostLooks = 1000;
constexpr int kStepsOfLook = 4;             // and more where a step has few micro-batches
constexpr std::size_t kLooksAtFlushed = 2;  // the best, and the best hand-made one

bool is_v(const Scenario& scenario, int stage) {
  const int turn = stage / scenario.ranks, place = stage % scenario.ranks;
  const int rank = turn % 2 == 0 ? place : scenario.ranks - 1 - place;
  return scenario.rank_of_stage[stage] == rank;
}

/// Whether the stages of a scenario lie as a schedule wants them.
bool lies_as(const Scenario& scenario, const ScheduleEntry& entry) {
  const int stages = static_cast<int>(scenario.rank_of_stage.size());
  const auto all = [&](auto&& holds) {
    for (int stage = 0; stage < stages; ++stage) {
      if (!holds(stage)) return false;
    }
    return stages % scenario.ranks == 0;
  };
  const auto in_loops = [&](int s) { return scenario.rank_of_stage[s] == s % scenario.ranks; };
  switch (entry.layout) {
    case StageLayout::Any:
      return true;
    case StageLayout::OneEach:
      return stages == scenario.ranks && all(in_loops);
    case StageLayout::Loop:
      return all(in_loops);
    case StageLayout::V:
      return stages % (entry.chunks * scenario.ranks) == 0 &&
             all([&](int s) { return is_v(scenario, s); });
    case StageLayout::Mirrored:
      return false;
  }
  return false;
}

/// Whether a schedule trains as "auto" does: what it is given is used for one update, all of it.
bool competes(const Scenario& scenario, const ScheduleEntry& entry) {
  const bool global = scenario.strategy.kind == StrategyKind::Global;
  if (entry.order != OrderSource::Function) return false;
  // Another way to send gradients, or eager by another name.
  if (entry.sends_lists || entry.trains == Trains::Local) return false;
  if (entry.slices) return false;
  if (entry.global() != global || entry.stash != StashMode::Kept) return false;
  if (global && !entry.parts_steps()) return false;
  if (!lies_as(scenario, entry)) return false;
  const int stages = static_cast<int>(scenario.rank_of_stage.size());
  return entry.problem == nullptr || entry
                                         .problem({scenario.ranks, stages, scenario.micro_batches,
                                                   scenario.schedule.update_every})
                                         .empty();
}

std::vector<SchedulePolicy> candidates(const Scenario& scenario) {
  std::vector<SchedulePolicy> policies;
  for (const ScheduleEntry& entry : schedule_catalogue()) {
    if (!competes(scenario, entry)) continue;
    SchedulePolicy policy = scenario.schedule;
    policy.kind = &entry;
    policy.chunks = static_cast<int>(scenario.rank_of_stage.size()) / scenario.ranks;
    policy.split_backward = entry.split_backward;
    policies.push_back(policy);
    if (!entry.other_backward.empty() || (entry.flushes && entry.split_backward)) continue;
    policies.push_back(policy);
    policies.back().split_backward = !policy.split_backward;
  }
  return policies;
}

/// Seconds of the busiest rank for one step: no step is shorter.
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

/// A scenario that takes one schedule after the other.
struct Trial {
  Scenario scenario;
  LowerInputs inputs;
};

/// A few steps of a schedule, without contention.
Program program_of(Trial& trial, const SchedulePolicy& policy) {
  trial.scenario.schedule = trial.inputs.policy = policy;
  const int stages = static_cast<int>(trial.scenario.rank_of_stage.size());
  const int steps = kStepsOfLook + 2 * stages / trial.scenario.micro_batches;
  Program program = lower_steps(trial.scenario, trial.inputs, steps);
  for (Wire& wire : program.wires) wire.shared = false;
  return program;
}

ScheduleJudge judge_of(const Scenario& scenario, const LowerInputs& inputs) {
  const auto trial = std::make_shared<Trial>(Trial{scenario, inputs});
  return {
      [trial](const SchedulePolicy& policy) { return quick_step_time(program_of(*trial, policy)); },
      [trial](const SchedulePolicy& policy) { return quick_peaks(program_of(*trial, policy)); }};
}

/// Hand-made schedules of one fixed order a rank, as orders whose ops can be moved.
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

SearchInputs search_inputs(const Scenario& scenario, const LowerInputs& inputs) {
  const Bytes capacity = scenario.schedule.memory > Bytes(0) ? scenario.schedule.memory
                                                             : scenario.cluster.device.memory;
  SearchInputs search{.candidates = candidates(scenario),
                      .own = scenario.schedule,
                      .capacity = capacity.value(),
                      .seed = scenario.seed};
  ScheduleInputs shape{.stages = static_cast<int>(scenario.rank_of_stage.size()),
                       .micro_batches = scenario.micro_batches,
                       .rank_of_stage = scenario.rank_of_stage,
                       .roles = inputs.roles,
                       .policy = scenario.schedule};
  for (const bool split : {true, false}) {
    shape.policy.split_backward = split;
    search.lists.push_back(list_inputs(inputs, shape, capacity));
  }
  search.bound = busiest(search.lists.back());
  const double ops = 3.0 * shape.stages * shape.micro_batches;
  search.evaluations = scenario.schedule.evaluations.value_or(
      static_cast<int>(std::clamp(kOpsOfSearch / ops, kLeastLooks, kMostLooks)));
  if (scenario.strategy.readout_every > 0) {
    search.lists.clear();  // readouts travel at micro-batches that one step does not show
  } else if (scenario.strategy.kind == StrategyKind::Global) {
    search.starts = orders_of(search.candidates, shape);
    // Updates come at the end of the step, those of a rank together.
    for (ListInputs& list : search.lists) {
      for (std::vector<ListOp>& ops_of_stage : list.ops) ops_of_stage.pop_back();
    }
  }
  return search;
}

[[noreturn]] void refuse(const Scenario& scenario, double capacity, double least) {
  const std::string leanest = format(Bytes(least));
  const std::string start = scenario.file + ": " + scenario.name +
                            ": /training/schedule: no order of work was found that fits into " +
                            format(Bytes(capacity)) + " a device";
  if (scenario.schedule.memory > Bytes(0)) {
    throw Error(start + "; expected \"memory\" of at least " + leanest +
                ", which the leanest one takes");
  }
  throw Error(start + ": the leanest one takes " + leanest +
              "; expected more devices, smaller micro-batches or \"recompute\"");
}

}  // namespace

Scenario resolve_auto(const Scenario& scenario) {
  if (!scenario.schedule.is_sought()) return scenario;
  const LowerInputs inputs = lower_inputs(scenario);
  const SearchInputs search = search_inputs(scenario, inputs);
  const FoundSchedules found = find_schedules(search, judge_of(scenario, inputs));
  // The judge knows no contention and saw only a few steps; the last word has a real run.
  Scenario trial = scenario, best = scenario;
  Seconds best_time(kInfinity);
  double least = found.least_memory;
  std::size_t looks = 0;
  for (const SchedulePolicy& policy : found.fitting) {
    trial.schedule = policy;
    const Measurement measured = run_scenario(trial, false).measurement;
    double peak = 0;
    for (const DeviceMetrics& device : measured.metrics.devices) {
      peak = std::max(peak, device.peak_memory.value());
    }
    least = std::max(least, peak);
    if (peak > search.capacity) continue;
    if (measured.metrics.step_time < best_time) {
      best_time = measured.metrics.step_time;
      best = trial;
    }
    const bool certain = scenario.strategy.kind == StrategyKind::Global;
    if (++looks >= kLooksAtFlushed && certain && !shares_links(measured.program)) break;
  }
  if (best.schedule.is_sought()) {
    refuse(scenario, search.capacity, least);
  }
  return best;
}

}  // namespace interlock
