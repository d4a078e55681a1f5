// Plans a scenario, measures its steps, and asks what days of them make.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/simulate/run_scenario.h"

#include "base/error.h"
#include "scenarios/plan/lower_plan.h"
#include "scenarios/ranges/published_errors.h"
#include "scenarios/simulate/calibrated_range.h"

namespace interlock {
namespace {

/// Simulates a swarm on one copy of the model's stages.
SwarmResult run_swarm(const Plan& plan) {
  if (is_mixed(plan.question.cluster)) {
    throw Error(
        "/swarm: peers of a swarm have devices of one kind, whose \"speeds\" may differ; "
        "expected a cluster of one machine");
  }
  std::vector<StageCost> stages = lower_inputs(plan).stages;
  stages.resize(static_cast<std::size_t>(plan.partition.stages()));
  return simulate_swarm_of(plan.question, stages);
}

}  // namespace

Confidence confidence_in(const Plan& plan, Seconds step_time) {
  if (!is_calibrated(plan.question.cluster)) return published_range(plan, step_time);
  return {.range = {}, .extrapolates = calibration_limits(plan)};
}

RunResult run_steps(const Plan& plan, const Metrics& metrics) {
  const MeasureInputs step = measure_inputs(plan);
  StepFacts facts{.metrics = metrics,
                  .samples = step.samples_per_step,
                  .tokens = step.tokens_per_step,
                  .micro_batches = plan.micro_batches,
                  .micro_batch_time = Seconds(0)};
  const bool divides = plan.question.run->on_failure == OnFailure::DropReplica;
  if (divides && replica_layout(plan.question).replicas > 1) {
    facts.micro_batch_time = micro_batch_time(plan, metrics.step_time);
  }
  return simulate_run(plan.question, facts);
}

ScenarioResult run_scenario(const Question& question, bool keep_log, int draws) {
  const Plan plan = make_plan(question);
  ScenarioResult result = simulate_plan(plan, keep_log ? Keep::Log : Keep::Explanation);
  const bool calibrated = !question.trace() && is_calibrated(question.cluster);
  if (draws > 0 && calibrated) result.confidence = calibrated_range(plan, draws);
  return result;
}

ScenarioResult simulate_plan(const Plan& plan, Keep keep) {
  MeasuredPlan measured = measure_plan(plan, keep);
  ScenarioResult result{
      .plan = plan, .measurement = std::move(measured.measurement), .varied = measured.varied};
  const Question& question = plan.question;
  if (question.trace()) return result;
  const Metrics& metrics = result.measurement.metrics;
  try {
    if (question.run) result.run = run_steps(plan, metrics);
    if (question.swarm) result.swarm = run_swarm(plan);
  } catch (const Error& error) {
    throw Error(question.file + ": " + question.name + ": " + error.what());
  }
  result.confidence = confidence_in(plan, metrics.step_time);
  return result;
}

}  // namespace interlock
