// Runs a workload: its program as it is.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "scenarios/run_scenario.h"

namespace interlock {

ScenarioResult run_workload(const Scenario& scenario, bool keep_log) {
  const TraceWorkload& workload = *scenario.workload;
  MeasureInputs inputs = measure_inputs(scenario);
  inputs.peak = FlopsPerSecond(0);
  if (workload.precision) {
    const auto& peak = scenario.cluster.device.peak[static_cast<std::size_t>(*workload.precision)];
    if (peak) inputs.peak = *peak;
  }
  inputs.explain = true;
  try {
    return {scenario, measure_after(workload.program, workload.steps.fill, inputs, keep_log)};
  } catch (const Error& error) {  // a deadlock of several ranks
    throw Error(scenario.file + ": " + scenario.name + ": " + error.what());
  }
}

}  // namespace interlock
