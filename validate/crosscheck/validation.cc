// Predicts, runs together and alone, and compares.
// SPDX-License-Identifier: Apache-2.0
#include "validate/crosscheck/validation.h"

#include <thread>
#include <utility>

#include "base/error.h"
#include "scenarios/plan/lower_plan.h"

namespace interlock {

namespace {

/// The wall tells what a run of real devices took; of threads that share processors it tells who
/// was served first.
OpClock clock_for(const Question& scenario, const Program& program) {
  const bool threads = scenario.cluster.executor.kind == RealDevices::Kind::Cpu;
  const bool crowded = program.ranks.size() > std::thread::hardware_concurrency();
  return threads && crowded ? OpClock::Processor : OpClock::Wall;
}

/// Returns the log that is compared as the measured run: the run itself, or, by the processor's
/// clock, what the engine makes of the times that threads were on processors, in the order of the
/// run. The log is in order of time, so that memory is told as well.
TraceLog compared_log(const Execution& execution, const MeasuredRun& run, OpClock clock) {
  if (clock == OpClock::Wall) return run.log;
  TraceLog log;
  run_event_loop(replay_of(execution.program, run.log, run.samples, clock), log_sink(log));
  return log;
}

}  // namespace

ScenarioResult predict(const Plan& plan, int fill, int steps) {
  Program program = lower_plan(plan, fill + steps);
  MeasureInputs inputs = measure_inputs(plan);
  inputs.steps = steps;
  inputs.explain = true;
  TraceLog log;
  const RunSummary summary = run_program(program, plan.question.simulation.engine, log_sink(log));
  ScenarioResult result{plan, measure_trace(std::move(program), std::move(log), fill, inputs)};
  result.measurement.metrics.engine = summary.engine;
  return result;
}

Validation validate(const ScenarioResult& predicted, const NeuralNetwork& network,
                    const ValidationOptions& options) {
  const Plan& plan = predicted.plan;
  const Question& scenario = plan.question;
  ExecutionOptions alone = options.execution;
  alone.alone = true;
  MeasuredRun run;
  run.alone = execute(plan, network, alone).samples;
  ExecutionOptions together = options.execution;
  together.untraced = scenario.cluster.executor.kind == RealDevices::Kind::Cuda;
  Execution execution = execute(plan, network, together);
  if (execution.stopped) {
    throw Error(scenario.name + ": interrupted before its end; nothing to compare");
  }
  run.log = std::move(execution.log);
  run.samples = std::move(execution.samples);
  for (const HeldMemory& memory : execution.outcome.memory) {
    run.peaks.emplace_back(static_cast<double>(memory.peak));
  }
  ComparisonInputs inputs{.name = scenario.name,
                          .fill = options.fill,
                          .clock = options.clock.value_or(clock_for(scenario, execution.program)),
                          .measure = measure_inputs(plan)};
  inputs.measure.steps = options.execution.steps - options.fill;
  Validation validation{.comparison = compare_runs(predicted.measurement, run, inputs),
                        .measured = {.plan = plan}};
  validation.comparison.execution = std::move(execution.record);
  inputs.measure.explain = true;
  validation.measured.plan.question.name =
      "measured, " + std::string(name_of(inputs.clock)) + " clock | " + scenario.name;
  TraceLog compared = compared_log(execution, run, inputs.clock);
  validation.measured.measurement = measure_trace(std::move(execution.program), std::move(compared),
                                                  options.fill, inputs.measure);
  validation.measured.measurement.metrics.engine = name_of(scenario.cluster.executor.kind);
  return validation;
}

}  // namespace interlock
