// Looks at plans and judges them.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/search/plan_estimate.h"

#include <algorithm>

#include "scenarios/simulate/economics.h"
#include "scenarios/simulate/run_scenario.h"

namespace interlock {

namespace {

/// Tasks that are simulated in a tenth of a second.
constexpr std::int64_t kTasksOfJudgement = 60'000;
/// Looks round durations otherwise than runs, and fold what runs do not.
constexpr double kLookSlack = 1e-6;
constexpr double kRounding = 1e-9;
constexpr int kLeastTurns = 1;  // of the steady loop, in a shortened step

PlanFigures figures_of(const Scenario& scenario, const Metrics& metrics, Bytes memory) {
  const Economics economics = economics_of(scenario, metrics);
  PlanFigures figures{};
  const auto at = [&](Aim aim) -> double& { return figures[static_cast<std::size_t>(aim)]; };
  at(Aim::Time) = metrics.step_time.value();
  at(Aim::Memory) = memory.value();
  if (economics.energy) at(Aim::Energy) = economics.energy->value();
  if (economics.cost) at(Aim::Cost) = economics.cost->amount;
  if (!economics.training) return figures;
  at(Aim::Time) = economics.training->time.value();
  if (economics.training->energy) at(Aim::Energy) = economics.training->energy->value();
  if (economics.training->cost) at(Aim::Cost) = economics.training->cost->amount;
  return figures;
}

Bytes peak_of(const Metrics& metrics) {
  Bytes peak(0);
  for (const DeviceMetrics& device : metrics.devices) peak = std::max(peak, device.peak_memory);
  return peak;
}

/// What a plan costs whose steps are as `estimate` has them.
void price(const Scenario& scenario, PlanEstimate& estimate) {
  Metrics metrics;
  metrics.step_time = Seconds(estimate.step_time);
  metrics.busy = estimate.busy;
  metrics.links = {{.name = "", .utilisation = estimate.working_links}};
  estimate.figures = figures_of(scenario, metrics, Bytes(estimate.peak_memory));
  if (const auto power = economics_of(scenario, metrics).power) estimate.power = power->value();
}

PlanEstimate estimate_of(const Scenario& scenario, const Metrics& metrics) {
  PlanEstimate estimate = {.step_time = metrics.step_time.value(),
                           .busy = metrics.busy,
                           .peak_memory = peak_of(metrics).value(),
                           .memory_capacity = metrics.memory_capacity.value(),
                           .micro_batches = scenario.micro_batches,
                           .fits = metrics.fits_in_memory};
  for (const LinkMetrics& link : metrics.links) {
    estimate.working_links += link.utilisation * link.stands_for;
  }
  if (!metrics.devices.empty()) {
    estimate.time = metrics.devices[static_cast<std::size_t>(metrics.limiting_device)].time;
  }
  price(scenario, estimate);
  return estimate;
}

/// The same step in `ratio` times the time: devices do what they did, and wait the rest.
PlanEstimate stretched(const Scenario& scenario, PlanEstimate estimate, double ratio) {
  estimate.step_time *= ratio;
  estimate.busy /= ratio;
  estimate.working_links /= ratio;
  double known = 0;
  for (double& share : estimate.time) known += share /= ratio;
  estimate.time[static_cast<std::size_t>(TimeUse::Exposed)] += 1 - known;
  price(scenario, estimate);
  return estimate;
}

std::int64_t tasks_of(const Scenario& scenario, int steps) {
  return count_tasks(lower_steps(scenario, lower_inputs(scenario), steps));
}

/// A step of fewer micro-batches, so that SimGrid simulates no more than it should; as it is where
/// its schedule has no steady loop.
Scenario shortened(const Scenario& scenario, std::int64_t tasks_in_step) {
  const ScheduleEntry& entry = *scenario.schedule.kind;
  const int micro_batches = scenario.micro_batches;
  const bool fits = scenario.parts.empty() && scenario.slices.empty() &&
                    scenario.schedule.update_every == micro_batches && entry.period != nullptr;
  if (!fits || tasks_in_step <= kTasksOfJudgement) return scenario;
  const int stages = static_cast<int>(scenario.rank_of_stage.size()) / scenario.copies;
  const int period = entry.period({scenario.ranks, stages, micro_batches});
  const double wanted = double(micro_batches) * kTasksOfJudgement / double(tasks_in_step);
  const int least = std::max(static_cast<int>(wanted), stages + kLeastTurns * period);
  const int fewer = micro_batches - std::max(0, micro_batches - least) / period * period;
  Scenario shorter = scenario;
  shorter.micro_batches = shorter.schedule.update_every = fewer;
  return shorter;
}

}  // namespace

PlanFigures figures_of(const Scenario& scenario, const StepBound& bound) {
  Metrics metrics;
  metrics.step_time = bound.time * (1 - kRounding);
  metrics.busy = bound.time > Seconds(0) ? std::min(1.0, bound.busy / bound.time) : 0;
  return figures_of(scenario, metrics, bound.memory * (1 - kRounding));
}

PlanEstimate look_at(const Scenario& scenario) {
  const LoneMeasurement alone = measure_alone(scenario);
  PlanEstimate look = estimate_of(scenario, alone.metrics);
  look.exact = !alone.shares;
  if (look.exact) return look;
  // A judgement takes no less time, and may find peaks of memory at other instants.
  const PlanFigures bound = figures_of(scenario, bound_plan(scenario));
  look.figures = alone.chooses ? bound : stretched(scenario, look, 1 - kLookSlack).figures;
  look.figures[static_cast<std::size_t>(Aim::Memory)] =
      bound[static_cast<std::size_t>(Aim::Memory)];
  return look;
}

PlanEstimate judge(const Scenario& scenario, const PlanEstimate& look) {
  const Scenario resolved = resolve_folding(scenario);
  const std::int64_t tasks = tasks_of(resolved, 1);
  if (tasks * resolved.steps <= kTasksOfJudgement) {
    PlanEstimate whole = estimate_of(scenario, run_unexplained(scenario).measurement.metrics);
    whole.judged_micro_batches = look.exact ? 0 : scenario.micro_batches;
    return whole;
  }
  if (look.exact) return look;
  Scenario shorter = shortened(resolved, tasks);
  shorter.steps = 1;
  const Seconds judged = run_unexplained(shorter).measurement.metrics.step_time;
  const double ratio = judged / measure_alone(shorter).metrics.step_time;
  PlanEstimate estimate = stretched(scenario, look, std::max(1.0, ratio));
  estimate.judged_micro_batches = shorter.micro_batches;
  return estimate;
}

}  // namespace interlock
