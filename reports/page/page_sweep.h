// PageSweep: a page's views of many results: heat-maps, curves and the Pareto front.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "scenarios/simulate/run_scenario.h"

namespace interlock {

/// Returns, for each measure that all results have, a table with a row for each combination of the
/// swept values but the last (from two swept paths on) and curves along a swept number; and
/// throughput against memory. Empty where there is nothing to compare: two results that no sweep
/// made. Points and cells of the first `drawn` results lead to their sections. REQUIRES: there are
/// results.
std::string sweep_html(const std::vector<ScenarioResult>& results, std::size_t drawn);

}  // namespace interlock
