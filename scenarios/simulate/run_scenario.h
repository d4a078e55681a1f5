// The run on one page: Scenario to Measurement.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "scenarios/load/scenario.h"
#include "scenarios/long_run/run_plan.h"
#include "scenarios/long_run/swarm_plan.h"
#include "scenarios/ranges/confidence.h"
#include "sim/lower/lower.h"
#include "sim/measure/metrics.h"
#include "sim/measure/varied_steps.h"

namespace interlock {

/// A scenario and what simulating it gave.
struct ScenarioResult {
  Scenario scenario;
  Measurement measurement;
  std::optional<VariedOutcome> varied;  // over seeds, where steps differ
  std::optional<RunResult> run;         // of its "run", if it has one
  std::optional<SwarmResult> swarm;     // of its "swarm", likewise
  Confidence confidence = {};           // in the step time
};

/// How `rank` divides its stages.
Mesh mesh_of(const Scenario& scenario, int rank);
/// What prices the modules of `scenario`, on `rank` where ranks have layouts of their own.
PriceInputs price_inputs(const Scenario& scenario, int rank = 0);

/// What lowering is told of `scenario`, but for its schedule, which depends on the steps.
LowerInputs lower_inputs(const Scenario& scenario);
/// The order of `steps` steps; fits the windows of `inputs` to slices. REQUIRES: it is known.
Schedule schedule_of(const Scenario& scenario, LowerInputs& inputs, int steps);
/// `scenario` with the dimensions that must be simulated whole; others are folded where it is
/// exact. Throws: Error if it asks for a folding that is not.
Scenario resolve_folding(const Scenario& scenario);
/// The program of `scenario` for `steps` steps. REQUIRES: its schedule is not yet to be found.
Program lower_steps(const Scenario& scenario, LowerInputs inputs, int steps);

/// The program of `scenario` for `steps` steps.
Program lower_scenario(const Scenario& scenario, int steps);

/// What is measured of a run of `scenario`.
MeasureInputs measure_inputs(const Scenario& scenario);

/// Simulates the workload of `scenario`: as many steps as its traces hold, of which they say what
/// is measured. REQUIRES: it has one.
ScenarioResult run_workload(const Scenario& scenario, bool keep_log);

/// A few steps of `scenario` as if no two messages ever met on a link, devices folded as far as can
/// be. Where ranks do what one order says, contention only delays: no step is shorter than this.
struct LoneMeasurement {
  Metrics metrics;
  bool shares = false;  // links, or devices differ that were folded: else this is what run_scenario
                        // measures
  bool chooses = false;  // some rank chooses its order at run time: contention may even help it
};
/// REQUIRES: its order of work is known, and no workload.
LoneMeasurement measure_alone(const Scenario& scenario);

/// Simulates `scenario`. `keep_log` keeps the trace for a report.
ScenarioResult run_scenario(const Scenario& scenario, bool keep_log);
/// The same, faster, without why its steps take as long as they do. For many.
ScenarioResult run_unexplained(const Scenario& scenario);

}  // namespace interlock
