// Reads "simulate": the engine, its seed, and what may be left out.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/contract.h"
#include "scenarios/loader.h"

namespace interlock {

void read_simulate(const JsonNode& node, Scenario& scenario, Diagnostics& diagnostics) {
  constexpr int kLargestSeed = 2'147'483'647;
  Section section("simulate", node, diagnostics);
  scenario.engine = static_cast<EngineKind>(section.choice("engine", 0));
  scenario.seed = section.count("seed", 1, 0, kLargestSeed);
  scenario.skip_periods = section.boolean("skip_periods", true);
  scenario.memory_contention = section.boolean("memory_contention", false);
  if (const auto fold = section.get("fold")) scenario.unfolded = read_fold(*fold, diagnostics);
  section.finish();
}

}  // namespace interlock
