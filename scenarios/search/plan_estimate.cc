// Estimates plans by a look or a simulation, and prices them.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/search/plan_estimate.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "scenarios/plan/lower_plan.h"
#include "scenarios/simulate/economics.h"
#include "sim/plan/vocabulary.h"

namespace interlock {

namespace {

/// Tasks that are simulated in a tenth of a second.
constexpr std::int64_t kTasksOfSimulation = 60'000;
/// A look rounds durations otherwise than a simulation, and folds what that does not.
constexpr double kLookSlack = 1e-6;
constexpr double kRounding = 1e-9;
constexpr int kLeastTurns = 1;  // of the steady loop, in a shortened step

/// Returns after how many micro-batches a step of `plan` does the same again; nothing if its
/// schedule has no steady loop, or updates in between.
std::optional<int> period_of(const Plan& plan) {
  const ScheduleEntry& entry = *plan.schedule.kind;
  const bool steady = plan.sized_batches.empty() && plan.slices.empty() &&
                      plan.replica_micro_batches.empty() && plan.schedule.deferred_readout == 0 &&
                      plan.schedule.vocabulary == VocabularySplit::Whole &&
                      plan.schedule.messages.lines == MessageOrder::Lines::Free &&
                      plan.schedule.update_every == plan.micro_batches && entry.period != nullptr;
  if (!steady) return std::nullopt;
  return entry.period({.ranks = plan.question.layout.ranks(), .round = plan.schedule.round});
}

}  // namespace

Plan shortened(const Plan& plan, std::int64_t tasks_in_step, std::int64_t most_tasks) {
  const std::optional<int> period = period_of(plan);
  if (!period || tasks_in_step <= most_tasks) return plan;
  const int micro_batches = plan.micro_batches;
  const double wanted = double(micro_batches) * double(most_tasks) / double(tasks_in_step);
  const int least =
      std::max(static_cast<int>(wanted), plan.question.layout.stages + kLeastTurns * *period);
  return with_micro_batches(plan,
                            micro_batches - std::max(0, micro_batches - least) / *period * *period);
}

namespace {

/// Returns the tasks of a step of `plan`, which is folded as is exact, from those of the shortest
/// steps that have its loop, `shortest` with `known` of them.
std::int64_t tasks_of(const Plan& plan, const Plan& shortest, std::optional<std::int64_t> known) {
  const auto count = [](const Plan& one) { return count_tasks(lower_plan(one, 1)); };
  const int turns = shortest.micro_batches < plan.micro_batches
                        ? (plan.micro_batches - shortest.micro_batches) / *period_of(plan)
                        : 0;
  if (turns < 2 && (turns > 0 || !known)) return count(plan);
  const std::int64_t least = known ? *known : count(shortest);
  if (turns == 0) return least;
  const Plan next = with_micro_batches(shortest, shortest.micro_batches + *period_of(plan));
  return least + turns * (count(next) - least);
}

PlanValues values_of(const Economics& economics, const Metrics& metrics, Bytes memory) {
  PlanValues values{};
  const auto at = [&](Aim aim) -> double& { return values[static_cast<std::size_t>(aim)]; };
  at(Aim::Time) = metrics.step_time.value();
  at(Aim::Memory) = memory.value();
  if (economics.energy) at(Aim::Energy) = economics.energy->value();
  if (economics.cost) at(Aim::Cost) = economics.cost->amount;
  if (!economics.training) return values;
  at(Aim::Time) = economics.training->time.value();
  if (economics.training->energy) at(Aim::Energy) = economics.training->energy->value();
  if (economics.training->cost) at(Aim::Cost) = economics.training->cost->amount;
  return values;
}

/// Returns 0 where the capacity is unknown.
double share_of(double memory, double capacity) { return capacity > 0 ? memory / capacity : 0; }

/// Fills in what `plan` costs, whose steps are as `estimate` has them.
void price(const Plan& plan, PlanEstimate& estimate) {
  Metrics metrics;
  metrics.step_time = Seconds(estimate.step_time);
  metrics.busy = estimate.busy;
  metrics.links = {{.name = "", .utilisation = estimate.working_links}};
  const Economics economics = economics_of(plan, metrics, Watts(estimate.working_power));
  estimate.values = values_of(economics, metrics, Bytes(estimate.peak_memory));
  estimate.memory_share = share_of(estimate.fullest_memory, estimate.memory_capacity);
  if (economics.power) estimate.power = economics.power->value();
}

PlanEstimate estimate_of(const Plan& plan, const StepEstimate& step) {
  const Metrics& metrics = step.metrics;
  PlanEstimate estimate = {.step_time = step.time.value(),
                           .busy = step.busy,
                           .working_power = working_power(plan, metrics).value(),
                           .peak_memory = step.memory.value(),
                           .fullest_memory = step.fullest.value(),
                           .memory_capacity = step.memory_capacity.value(),
                           .samples = metrics.samples_per_s.value_or(0) * metrics.step_time.value(),
                           .tokens = metrics.tokens_per_s.value_or(0) * metrics.step_time.value(),
                           .mfu = metrics.mfu.value_or(0),
                           .micro_batches = plan.micro_batches,
                           .fits = metrics.fits_in_memory};
  estimate.flops_per_s = estimate.mfu * measure_inputs(plan).peak.value();
  for (const LinkMetrics& link : metrics.links) {
    estimate.working_links += link.utilisation * link.stands_for;
  }
  if (!metrics.devices.empty()) {
    estimate.time = metrics.devices[static_cast<std::size_t>(metrics.limiting_device)].time;
    estimate.memory = fullest_device(metrics).memory;
  }
  price(plan, estimate);
  estimate.kept_share = share_of(step.kept.value(), estimate.memory_capacity);
  return estimate;
}

/// Returns `estimate` of a step that takes `ratio` times the time: devices wait the rest of it.
PlanEstimate stretched(const Plan& plan, PlanEstimate estimate, double ratio) {
  estimate.step_time *= ratio;
  estimate.busy /= ratio;
  estimate.working_power /= ratio;
  estimate.working_links /= ratio;
  estimate.mfu /= ratio;
  estimate.flops_per_s /= ratio;
  double known = 0;
  for (double& share : estimate.time) known += share /= ratio;
  estimate.time[static_cast<std::size_t>(TimeUse::Exposed)] += 1 - known;
  price(plan, estimate);
  return estimate;
}

/// Returns about how many flows a simulation of every device has in a step.
double flows_of_all_devices(const Plan& plan) {
  const Mesh& mesh = plan.question.layout.mesh;
  const LowerInputs inputs = lower_inputs(plan);
  constexpr double kFlowsInRing = 2;  // of a member
  double flows = 0;
  for (const StageCost& stage : inputs.stages) {
    for (const OpCost* cost : costs_of_ops(stage)) {
      for (const Exchange& exchange : cost->exchanges) {
        const int others = group_size(mesh, exchange.axis) - 1;
        const bool each = exchange.kind == CollectiveKind::AllToAll;
        flows += exchange.count * (each ? others : std::min<double>(others, kFlowsInRing));
      }
    }
  }
  const auto machines = static_cast<double>(inputs.cluster.machines.size());  // have costs of each
  return flows / machines * plan.micro_batches * mesh.devices_of_rank();
}

/// Returns the most devices whose flows in what is simulated of a step are at most `flows`.
double devices_within(const Plan& plan, double flows) {
  const double all = flows_of_all_devices(plan);
  const Plan shorter = shortened(plan, static_cast<std::int64_t>(all), kTasksOfSimulation);
  const double simulated = all / plan.micro_batches * shorter.micro_batches;
  const int devices = plan.question.layout.mesh.devices();
  return simulated > flows ? devices * flows / simulated : devices;
}

}  // namespace

PlanEstimate estimate_by_bound(const Plan& plan, const StepEstimate& bound) {
  Metrics metrics;
  metrics.step_time = bound.time * (1 - kRounding);
  metrics.busy = bound.busy;
  return {.values = values_of(economics_of(plan, metrics), metrics, bound.memory * (1 - kRounding)),
          .memory_capacity = bound.memory_capacity.value(),
          .memory_share =
              share_of(bound.fullest.value(), bound.memory_capacity.value()) * (1 - kRounding)};
}

PlanEstimate estimate_by_look(const Plan& plan) {
  const StepEstimate step = estimate_step(plan, Grade::Look);
  PlanEstimate look = estimate_of(plan, step);
  look.exact = step.exact;
  look.folds = step.folds;
  if (look.exact) return look;
  // A simulation takes no less time, and may find peaks of memory at other instants.
  const PlanEstimate bound = estimate_by_bound(plan, estimate_step(plan, Grade::PlanBound));
  const auto memory = static_cast<std::size_t>(Aim::Memory);
  look.values = step.chooses ? bound.values : stretched(plan, look, 1 - kLookSlack).values;
  look.values[memory] = bound.values[memory];
  look.memory_share = bound.memory_share;
  return look;
}

PlanEstimate priced_look(const Plan& plan, PlanEstimate look) {
  price(plan, look);
  return look;
}

PlanEstimate estimate_by_simulation(const LaidOut& laid_out, const PlanEstimate& look,
                                    double most_flows) {
  Plan plan = laid_out.ordered();
  // Devices that stand for others exactly do so whatever the number of micro-batches.
  Plan shortest = shortened(plan, std::numeric_limits<std::int64_t>::max(), 0);
  const double most = look.folds ? kInfinity : devices_within(plan, most_flows);
  FoldedWithin within = fold_within(shortest, most);
  if (within.by_bytes) {
    within = {.folded = fold_within(plan, most).folded};
    fold_as(plan, shortest);
  }
  if (!within.folded) {
    PlanEstimate whole = priced_look(plan, look);
    whole.too_large = true;
    return whole;
  }
  fold_as(shortest, plan);
  const std::int64_t tasks = tasks_of(plan, shortest, within.tasks);
  if (tasks * plan.question.training().steps <= kTasksOfSimulation) {
    PlanEstimate whole = estimate_of(plan, estimate_step(plan, Grade::Simulation));
    whole.nearly = !plan.uneven.empty();
    whole.judged_micro_batches = look.exact ? 0 : plan.micro_batches;
    return whole;
  }
  if (look.exact) return look;
  Plan shorter = shortened(plan, tasks, kTasksOfSimulation);
  shorter.question.training().steps = 1;
  const Seconds simulated = estimate_step(shorter, Grade::Simulation).time;
  const double ratio = simulated / estimate_step(shorter, Grade::Look).time;
  PlanEstimate estimate = stretched(plan, look, std::max(1.0, ratio));
  estimate.judged_micro_batches = shorter.micro_batches;
  estimate.nearly = !plan.uneven.empty();
  return estimate;
}

}  // namespace interlock
