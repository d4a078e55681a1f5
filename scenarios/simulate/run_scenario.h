// run_scenario: a Question answered, and what is known of it then. cli/simulate.cc shows the way.
// SPDX-License-Identifier: Apache-2.0
//
// Example: scenarios/examples/gpt2-xl-1f1b.json has measurement.metrics.step_time 1.00 s, a
// confidence from 0.92 s to 1.32 s, and neither a run nor a swarm.
#pragma once

#include <optional>

#include "scenarios/long_run/run_plan.h"
#include "scenarios/long_run/swarm_plan.h"
#include "scenarios/plan/measure_plan.h"
#include "scenarios/ranges/confidence.h"

namespace interlock {

/// A plan and what simulating it gave.
struct ScenarioResult {
  Plan plan;
  Measurement measurement;
  std::optional<VariedOutcome> varied;  // over seeds, where steps differ
  std::optional<RunResult> run;         // of its "run", if it has one
  std::optional<SwarmResult> swarm;     // of its "swarm", likewise
  Confidence confidence = {};           // in the step time
};

/// Plans and simulates `question`; `keep_log` keeps the trace for a report. `draws`: for the range
/// of a step on a calibrated device; 0: it has none.
/// Throws: Error, which names the scenario, if no order of work fits, or its run does not end.
ScenarioResult run_scenario(const Question& question, bool keep_log, int draws = 0);

/// Returns the confidence in a step of `plan` that takes `step_time`. It takes no time: ranges of
/// calibrated devices are drawn where they are asked for.
Confidence confidence_in(const Plan& plan, Seconds step_time);

/// Simulates the hours of steps of `metrics` that the "run" of `plan` asks for, with failures and
/// checkpoints. Throws: Error if it does not end.
RunResult run_steps(const Plan& plan, const Metrics& metrics);

/// Simulates the steps of `plan`, then its long run and its swarm.
ScenarioResult simulate_plan(const Plan& plan, Keep keep);

}  // namespace interlock
