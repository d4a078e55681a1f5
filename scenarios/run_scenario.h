// The run on one page: Scenario to Measurement.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scenarios/scenario.h"
#include "sim/measure/metrics.h"
#include "sim/run/lower.h"

namespace interlock {

/// A scenario and what simulating it gave.
struct ScenarioResult {
  Scenario scenario;
  Measurement measurement;
};

/// What lowering is told of `scenario`, but for its schedule, which depends on the steps.
LowerInputs lower_inputs(const Scenario& scenario);
/// The program of `scenario` for `steps` steps. REQUIRES: its schedule is not yet to be found.
Program lower_steps(const Scenario& scenario, LowerInputs inputs, int steps);

/// The program of `scenario` for `steps` steps.
Program lower_scenario(const Scenario& scenario, int steps);

/// Simulates `scenario`. `keep_log` keeps the trace for a report.
ScenarioResult run_scenario(const Scenario& scenario, bool keep_log);

}  // namespace interlock
