// The run on one page: Scenario to Measurement.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scenarios/scenario.h"
#include "sim/measure/metrics.h"

namespace interlock {

/// A scenario and what simulating it gave.
struct ScenarioResult {
  Scenario scenario;
  Measurement measurement;
};

/// The program of `scenario` for `steps` steps.
Program lower_scenario(const Scenario& scenario, int steps);

/// Simulates `scenario`. `keep_log` keeps the trace for a report.
ScenarioResult run_scenario(const Scenario& scenario, bool keep_log);

}  // namespace interlock
