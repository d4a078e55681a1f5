// Runs one scenario: schedule, lower, simulate, measure.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/run_scenario.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "hardware/collective.h"
#include "scenarios/host_memory.h"
#include "scenarios/ranges/calibrated_range.h"
#include "scenarios/ranges/published_errors.h"
#include "scenarios/resolve_auto.h"
#include "sim/run/unfold.h"

namespace interlock {

namespace {

ProgramOfSteps programs_of(Scenario scenario, LowerInputs inputs) {
  inputs.policy = scenario.schedule;
  return [scenario = std::move(scenario), inputs = std::move(inputs)](
             int steps, double most_ticks_per_second) {
    LowerInputs like = inputs;
    like.most_ticks_per_second = most_ticks_per_second;
    return lower_steps(scenario, std::move(like), steps);
  };
}

}  // namespace

MeasureInputs measure_inputs(const Scenario& scenario) {
  const ModelGraph& graph = scenario.graph;
  const double replicas = scenario.mesh.degree(Dimension::Data);
  const double micro_batches = scenario.micro_batches;
  MeasureInputs inputs = {.steps = scenario.steps,
                          .engine = scenario.engine,
                          .attention_flops = graph.attention_flops,
                          .memory_capacity = scenario.cluster.device.memory};
  if (graph.samples_per_micro_batch) {
    inputs.samples_per_step = *graph.samples_per_micro_batch * micro_batches;
    if (!scenario.parts.empty()) inputs.samples_per_step = 0;  // it is theirs
    for (const BatchPart& part : scenario.parts) *inputs.samples_per_step += part.samples;
    *inputs.samples_per_step *= replicas;
    if (graph.tokens_per_sample) {
      inputs.tokens_per_step = *inputs.samples_per_step * *graph.tokens_per_sample;
    }
  }
  const auto& peak = scenario.cluster.device.peak[static_cast<std::size_t>(scenario.precision)];
  if (peak) inputs.peak = *peak;
  if (scenario.variation && !scenario.variation->speeds.empty()) {
    const std::vector<double>& speeds = scenario.variation->speeds;
    const double sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
    inputs.peak = inputs.peak * (sum / static_cast<double>(speeds.size()));
  }
  return inputs;
}

namespace {

bool varies(const Scenario& scenario) { return scenario.variation && scenario.variation->varies(); }

/// What is kept of a run besides its figures.
enum class Keep { Nothing, Explanation, Log };

/// What is measured, long steps by two shorter ones where that is exact.
MeasureInputs measure_inputs_of(const Scenario& scenario, const LowerInputs& inputs) {
  MeasureInputs measured = measure_inputs(scenario);
  const ScheduleEntry& entry = schedule_entry(scenario.schedule.kind);
  if (scenario.skip_periods && !scenario.schedule.bulk_synchronous && !varies(scenario) &&
      entry.period != nullptr) {
    const int stages = static_cast<int>(scenario.rank_of_stage.size()) / scenario.copies;
    const int period = entry.period({scenario.ranks, stages, scenario.micro_batches});
    measured.long_step = {scenario.micro_batches, period, [&](int micro_batches) {
                            Scenario shorter = scenario;
                            shorter.micro_batches = shorter.schedule.update_every = micro_batches;
                            return programs_of(std::move(shorter), inputs);
                          }};
  }
  return measured;
}

Measurement measure_scenario(const Scenario& scenario, const LowerInputs& inputs, Keep keep) {
  MeasureInputs measured = measure_inputs_of(scenario, inputs);
  // The steady steps of those that vary are not what is shown.
  measured.explain = keep != Keep::Nothing && !varies(scenario);
  return measure(programs_of(scenario, inputs), measured, keep == Keep::Log);
}

/// What one more micro-batch adds to a step, by a step of twice as many. An order that is written
/// for its micro-batches is taken to grow in proportion.
Seconds micro_batch_time(const Scenario& scenario, const LowerInputs& inputs, Seconds step_time) {
  const double micro_batches = scenario.micro_batches;
  if (scenario.schedule.order || !scenario.parts.empty()) return step_time / micro_batches;
  Scenario longer = scenario;
  longer.micro_batches *= 2;
  longer.schedule.update_every *= 2;
  return (measure_scenario(longer, inputs, Keep::Nothing).metrics.step_time - step_time) /
         micro_batches;
}

RunResult run_steps(const Scenario& scenario, const LowerInputs& inputs, const Metrics& metrics) {
  const MeasureInputs measured = measure_inputs(scenario);
  StepFacts facts{metrics, measured.samples_per_step, measured.tokens_per_step, Seconds(0)};
  const bool divides = scenario.run->on_failure == OnFailure::DropReplica;
  if (divides && replica_layout(scenario).replicas > 1) {
    facts.micro_batch_time = micro_batch_time(scenario, inputs, metrics.step_time);
  }
  return simulate_run(scenario, facts);
}

/// Steps that differ, in place of the steady ones of `result`.
void vary_steps(const Scenario& scenario, const LowerInputs& inputs, bool keep_log,
                ScenarioResult& result) {
  const VariedSteps varied = {variation_of(scenario),
                              scenario.variation->random() ? scenario.variation->seeds : 1};
  VariedMeasurement measured =
      measure_varied(programs_of(scenario, inputs), varied, measure_inputs(scenario),
                     result.measurement, keep_log);
  result.measurement = std::move(measured.measurement);
  result.varied = measured.outcome;
}

/// What costs nothing: ranges of calibrated devices are drawn where somebody asks.
Confidence confidence_in(const Scenario& scenario, Seconds step_time) {
  if (!scenario.cluster.device.calibrated) return published_range(scenario, step_time);
  return {.range = {}, .extrapolates = calibration_limits(scenario)};
}

/// A swarm on one copy of the model's stages.
SwarmResult run_swarm(const Scenario& scenario, const LowerInputs& inputs) {
  const int stages = scenario.partition.stages();
  return simulate_swarm_of(scenario, {inputs.stages.begin(), inputs.stages.begin() + stages});
}

}  // namespace

Scenario resolve_folding(const Scenario& asked) {
  Scenario scenario = asked;
  const std::vector<Unfolded> all = foldings(scenario.mesh);
  if (all.size() == 1) {
    scenario.unfolded = all.front();
    return scenario;
  }
  std::string problem;
  for (const Unfolded& unfolded : scenario.unfolded ? std::vector{*scenario.unfolded} : all) {
    scenario.unfolded = unfolded;
    problem = variation_folding_problem(scenario, unfolded);
    if (!problem.empty()) continue;
    problem = lower_steps(scenario, lower_inputs(scenario), 1).folding_problem;
    if (problem.empty()) return scenario;
  }
  throw Error(scenario.file + ": " + scenario.name +
              ": /simulate/fold: ranks that stand for others would not do what those do: " +
              problem + "; expected \"auto\", which simulates them all where it must");
}

Program lower_scenario(const Scenario& asked, int steps) {
  CHECK(!asked.workload, "a workload has its program");
  const Scenario scenario = resolve_folding(resolve_auto(asked));
  return lower_steps(scenario, lower_inputs(scenario), steps);
}

LoneMeasurement measure_alone(const Scenario& asked) {
  constexpr int kFewSteps = 2;  // in the steady state they are as long as more
  Scenario scenario = asked;
  if (scenario.mesh.devices() > 1) scenario.unfolded = kFolded;
  scenario.steps = std::min(scenario.steps, kFewSteps);
  LowerInputs inputs = lower_inputs(scenario);
  inputs.contention = false;
  // Kernels lose nothing to what is sent beside them: how much that is depends on when it is sent.
  inputs.cluster.device.collective_sms = inputs.cluster.device.message_sms = 0;
  inputs.memory_contention = false;
  MeasureInputs measured = measure_inputs_of(scenario, inputs);
  measured.engine = EngineKind::Native;
  // Long steps are measured by shorter ones, which are made of `scenario` and `inputs`, too.
  const Measurement measurement = measure(programs_of(scenario, inputs), measured, false);
  const Program& program = measurement.program;
  return {measurement.metrics, program.ignores_contention || !program.folding_problem.empty(),
          chooses_order(program)};
}

namespace {

ScenarioResult run(const Scenario& asked, Keep keep) {
  const Scenario scenario = resolve_folding(resolve_auto(asked));
  const LowerInputs inputs = lower_inputs(scenario);
  try {
    const bool varied = varies(scenario);
    ScenarioResult result{scenario,
                          measure_scenario(scenario, inputs, varied ? Keep::Explanation : keep)};
    if (varied) vary_steps(scenario, inputs, keep == Keep::Log, result);
    add_host_memory(scenario, result.measurement.metrics);
    if (scenario.run) result.run = run_steps(scenario, inputs, result.measurement.metrics);
    if (scenario.swarm) result.swarm = run_swarm(scenario, inputs);
    result.confidence = confidence_in(scenario, result.measurement.metrics.step_time);
    return result;
  } catch (const Error& error) {  // a deadlock, or links that the chosen engine does not know
    throw Error(scenario.file + ": " + scenario.name + ": " + error.what());
  }
}

}  // namespace

ScenarioResult run_scenario(const Scenario& scenario, bool keep_log) {
  if (scenario.workload) return run_workload(scenario, keep_log);
  return run(scenario, keep_log ? Keep::Log : Keep::Explanation);
}

ScenarioResult run_unexplained(const Scenario& scenario) {
  if (scenario.workload) return run_workload(scenario, false);
  return run(scenario, Keep::Nothing);
}

}  // namespace interlock
