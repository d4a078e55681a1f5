// interlock simulate and interlock compare: load, run, print, write.
// SPDX-License-Identifier: Apache-2.0
#include "cli/console/inputs.h"
#include "cli/console/outputs.h"
#include "cli/console/terminal.h"
#include "cli/parser/commands.h"
#include "scenarios/simulate/calibrated_range.h"
#include "scenarios/simulate/run_scenario.h"

namespace interlock {
namespace {

/// `draws`: for the range of each step on a calibrated device; 0: it has none.
std::vector<ScenarioResult> run_all(const std::vector<Question>& scenarios, bool pictures,
                                    int draws) {
  std::vector<ScenarioResult> results;
  results.reserve(scenarios.size());
  for (const Question& scenario : scenarios) {
    const bool keep_log = pictures && results.size() < kMostDrawn;
    ScenarioResult& result = results.emplace_back(run_scenario(scenario, keep_log));
    if (draws == 0 || scenario.workload || !scenario.cluster.device.calibrated) continue;
    result.confidence = calibrated_range(result.plan, draws);
  }
  return results;
}

void run(const CommandOptions& options, bool always_array) {
  check_outputs(options);
  const std::vector<Question> scenarios = load_inputs(options);
  check_single(options, scenarios.size());
  const bool pictures = !options.report.empty() || !options.svg.empty() || !options.trace.empty() ||
                        !options.kineto.empty() || !options.chakra.empty();
  const std::vector<ScenarioResult> results = run_all(scenarios, pictures, options.ranges);
  const bool table = !options.quiet && options.json != "-";
  if (table) print(terminal_table(results, terminal_style()));
  if (options.require_fit) require_fit(results);
  write_outputs(options, results, always_array || results.size() > 1);
}

}  // namespace

void simulate(const CommandOptions& options) { run(options, false); }
void compare(const CommandOptions& options) { run(options, true); }

}  // namespace interlock
