// Makes the plan of a run: its steps, devices, failures and checkpoints; and simulates it.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/long_run/run_plan.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "scenarios/load/loader.h"

namespace interlock {
namespace {

constexpr double kMostPlannedSteps = 1e12;
constexpr double kMostMicroBatches = 1e15;
constexpr double kMostEvents = 1e8;  // failures and checkpoints of all seeds

std::int64_t whole_steps_of(const RunConditions& run, const StepFacts& facts) {
  const double steps = steps_of(run.length, {facts.samples, facts.tokens});
  if (steps > kMostPlannedSteps) {
    throw Error("the run has about " + format_number(steps) + " steps; expected at most " +
                format_number(kMostPlannedSteps));
  }
  return static_cast<std::int64_t>(steps);
}

/// Parts whose failures hit `devices` devices, of nodes of `devices_per_node`.
std::vector<FailingParts> failing_parts(const FailureConditions& failures, int devices,
                                        int devices_per_node) {
  std::vector<FailingParts> kinds;
  if (failures.device) kinds.push_back({*failures.device, devices, 1});
  if (failures.link) kinds.push_back({*failures.link, devices, 1});
  const int nodes = (devices + devices_per_node - 1) / devices_per_node;
  if (failures.node) kinds.push_back({*failures.node, nodes, devices_per_node});
  return kinds;
}

FailureModel failure_model(const Question& question, int devices) {
  const FailureConditions& failures = question.run->failures;
  const int each = std::max(1, question.cluster.machines.front().devices_per_node);
  for (const Machine& machine : question.cluster.machines) {
    const bool alike =
        machine.devices_per_node == each && (machine.joins || machine.first_device % each == 0);
    if (!failures.node || alike) continue;
    throw Error("nodes of " + machine.name +
                " hold other numbers of devices than the first ones, "
                "and failures of such nodes are not simulated; expected \"device_mtbf\" in the "
                "place of \"node_mtbf\"");
  }
  return {.kinds = failing_parts(failures, devices, each),
          .shape = failures.shape,
          .replacement = failures.replacement,
          .trace = failures.trace};
}

/// Weights and optimiser states of the device that has most of them, with those on its host.
Bytes state_of_device(const Metrics& metrics) {
  Bytes most;
  for (const DeviceMetrics& device : metrics.devices) {
    const auto here = [&](MemoryClass state) {
      return device.memory[static_cast<std::size_t>(state)];
    };
    most = std::max(
        most, here(MemoryClass::Weights) + here(MemoryClass::Optimizer) + device.host.optimizer);
  }
  return most;
}

Seconds write_time(const CheckpointConditions& checkpoint, const Metrics& metrics) {
  if (checkpoint.write) return *checkpoint.write;
  return checkpoint.bytes.value_or(state_of_device(metrics)) / checkpoint.bandwidth;
}

std::int64_t whole_steps(Seconds interval, Seconds step_time) {
  return std::max<std::int64_t>(1, std::llround(std::min(interval / step_time, kMostPlannedSteps)));
}

/// Steps between checkpoints. `costs` is there unless the interval is written.
std::int64_t interval_steps(const CheckpointConditions& checkpoint, const RunPlan& plan,
                            const std::optional<CheckpointCosts>& costs) {
  using Rule = CheckpointConditions::Rule;
  std::int64_t steps = 1;
  switch (checkpoint.rule) {
    case Rule::Written:
      return checkpoint.steps ? *checkpoint.steps
                              : whole_steps(*checkpoint.interval, plan.step_time);
    case Rule::Optimal:
      steps = optimal_interval_steps(plan.step_time, *costs);
      break;
    case Rule::Young:
      steps = whole_steps(young_interval(*costs), plan.step_time);
      break;
    case Rule::Daly:
      steps = whole_steps(daly_interval(*costs), plan.step_time);
      break;
  }
  if (!checkpoint.asynchronous) return steps;
  // More often than one can be written is no gain.
  const double writes = std::ceil(plan.checkpoint.write / plan.step_time);
  return std::max(steps, static_cast<std::int64_t>(std::min(writes, kMostPlannedSteps)));
}

RunPlan plan_without_checkpoints(const Question& question, const StepFacts& facts) {
  const RunConditions& run = *question.run;
  const Metrics& metrics = facts.metrics;
  const ReplicaLayout layout = replica_layout(question);
  const Seconds outer(metrics.outer_exposed_s.value_or(0));
  const Seconds filled = metrics.fill_steps * (metrics.step_time - outer);
  RunPlan plan{.steps = whole_steps_of(run, facts),
               .step_time = metrics.step_time,
               .replicas = layout.replicas,
               .devices_per_replica = layout.devices_per_replica,
               .spares = run.spares,
               .micro_batches = facts.micro_batches,
               .micro_batch_time = facts.micro_batch_time,
               .replicas_hold_state = layout.hold_state,
               .on_failure = run.on_failure,
               .detection = run.detection,
               .reload = run.reload.value_or(Seconds(0)),
               .regroup = run.regroup,
               .warm_up = std::max(Seconds(0), metrics.window_begin - filled)};
  const int devices = plan.replicas * plan.devices_per_replica + plan.spares;
  plan.failures = failure_model(question, devices);
  const double all = static_cast<double>(plan.steps) * static_cast<double>(plan.micro_batches);
  if (all * plan.replicas > kMostMicroBatches) {
    throw Error("the run has about " + format_number(all * plan.replicas) +
                " micro-batches; expected at most " + format_number(kMostMicroBatches));
  }
  return plan;
}

void check_length(const RunPlan& plan, int seeds) {
  const auto steps = static_cast<double>(plan.steps);
  double events = 0;
  if (plan.checkpoint.interval > 0) events = steps / static_cast<double>(plan.checkpoint.interval);
  if (const auto mean = mean_time_between_failures(plan.failures)) {
    events += steps * plan.step_time / *mean;
  }
  if (events * seeds <= kMostEvents) return;
  throw Error("the run has about " + format_number(events) +
              " checkpoints and failures under each "
              "of " +
              std::to_string(seeds) + " seeds; expected at most " + format_number(kMostEvents) +
              " in all, by fewer seeds or rarer checkpoints");
}

}  // namespace

ReplicaLayout replica_layout(const Question& question) {
  const Layout& layout = question.layout;
  const int replicas = layout.mesh.degree(Dimension::Data);
  if (layout.data_parallel.outer.any()) {  // each worker has all of the state
    const int workers = layout.mesh.replicas() / layout.mesh.shard;
    return {workers, layout.mesh.devices() / workers, true};
  }
  const bool whole = layout.data_parallel.zero_stage == 0 && layout.layer_layouts.empty();
  return {replicas, layout.mesh.devices() / replicas, whole};
}

void check_run(const Question& question, const JsonNode& run, Diagnostics& diagnostics) {
  const RunConditions& conditions = *question.run;
  check_length(question, conditions.length, run, diagnostics);
  const ReplicaLayout layout = replica_layout(question);
  const int devices = layout.replicas * layout.devices_per_replica + conditions.spares;
  std::set<int> seen;
  for (const DeviceEvent& event : conditions.failures.trace) {
    if (!seen.insert(event.first).second || event.up || event.first < devices) continue;
    report(diagnostics, run.child("failures").child("trace"),
           "device " + std::to_string(event.first) +
               " goes down before it was ever up; expected "
               "devices below the " +
               std::to_string(devices) + " of the run and its spares, or an \"up\" before");
    return;
  }
}

RunResult simulate_run(const Question& question, const StepFacts& facts) {
  const RunConditions& run = *question.run;
  RunResult result{.plan = plan_without_checkpoints(question, facts)};
  RunPlan& plan = result.plan;
  if (run.checkpoint) {
    CheckpointPolicy& policy = plan.checkpoint;
    policy.write = write_time(*run.checkpoint, facts.metrics);
    policy.asynchronous = run.checkpoint->asynchronous;
    policy.stall = run.checkpoint->stall;
    plan.reload = run.reload.value_or(policy.write);
    // Spares may fail without disturbing anybody.
    const FailureModel disturbing =
        failure_model(question, plan.replicas * plan.devices_per_replica);
    if (const auto mean = mean_time_between_failures(disturbing)) {
      result.costs = {.write = policy.asynchronous ? policy.stall : policy.write,
                      .restart = plan.detection + plan.reload + plan.warm_up,
                      .mean_time_between_failures = *mean};
    }
    policy.interval = interval_steps(*run.checkpoint, plan, result.costs);
  }
  check_length(plan, run.seeds);
  result.statistics =
      goodput_over_seeds(plan, static_cast<std::uint64_t>(question.simulation.seed), run.seeds);
  return result;
}

}  // namespace interlock
