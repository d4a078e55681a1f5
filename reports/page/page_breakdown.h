// PageBreakdown: where the time of each device goes, as a chart and a table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "scenarios/simulate/run_scenario.h"

namespace interlock {

/// Returns a chart with a bar for each device, at most `most_bars` (of more devices the busiest and
/// the least busy), and one for their mean; below it the same numbers as a table. The parts of a
/// bar add up to a step. `id` is unlike that of the page's other results. REQUIRES: most_bars >= 2.
std::string breakdown_html(const ScenarioResult& result, std::size_t most_bars,
                           const std::string& id);

}  // namespace interlock
