// PageBreakdown: where the time of each device goes, as bars that need no script.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "scenarios/simulate/run_scenario.h"

namespace interlock {

/// A bar for each device, of at most `most_bars` (of more devices the busiest and the least busy),
/// and one for their mean; below them the same numbers as a table. The parts of a bar add up to a
/// step. REQUIRES: most_bars >= 2.
std::string breakdown_html(const ScenarioResult& result, std::size_t most_bars);

}  // namespace interlock
