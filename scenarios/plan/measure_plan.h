// measure_plan: Plan to Metrics, by the programs of as many steps as measuring asks for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "scenarios/plan/plan.h"
#include "sim/lower/lower.h"
#include "sim/measure/metrics.h"
#include "sim/measure/varied_steps.h"

namespace interlock {

/// Says what is kept of a run besides its metrics: why steps take as long as they do, its trace.
/// FewSteps: nothing, and steps that are all alike may be measured by one of them.
enum class Keep { FewSteps, Nothing, Explanation, Log };

struct MeasuredPlan {
  Measurement measurement;
  std::optional<VariedOutcome> varied;  // over seeds, where steps differ
};

/// Simulates and measures the steps of `plan`; those of a workload are as many as its traces hold.
/// Throws: Error, which names the scenario, on a deadlock.
MeasuredPlan measure_plan(const Plan& plan, Keep keep);

/// Returns what is measured of a run of `plan`.
MeasureInputs measure_inputs(const Plan& plan);

/// Measures the steady steps of `plan`, long ones by two shorter ones where that is exact. `inputs`
/// may say otherwise than lower_inputs() does how devices are folded and links shared.
Measurement measure_steady(const Plan& plan, const LowerInputs& inputs, Keep keep);

/// Returns the programs of `plan` by their number of steps, lowered from `inputs`.
ProgramOfSteps programs_of(Plan plan, LowerInputs inputs);
/// Adds what hosts keep, and what each device's process holds in all, to what was measured.
void add_memory(const Plan& plan, Metrics& metrics);

/// Returns what one more micro-batch adds to a step of `step_time`, by a step of twice as many. An
/// order that is written for its micro-batches is taken to grow in proportion.
Seconds micro_batch_time(const Plan& plan, Seconds step_time);

}  // namespace interlock
