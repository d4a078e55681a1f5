// PageData: what the scripts of the HTML page draw, as JSON beside one compressed block of columns.
// SPDX-License-Identifier: Apache-2.0
//
// Ops, messages and memory changes are structures of arrays, grouped by device or wire; web/data.js
// is the reader. Times are in seconds since the run began, each as the distance from one before.
#pragma once

#include <string>

#include "reports/words/excerpt.h"
#include "scenarios/simulate/run_scenario.h"

namespace interlock {

/// Returns the data of one scenario, for the stretch that `excerpt` names.
std::string page_data(const ScenarioResult& result, const Excerpt& excerpt);

}  // namespace interlock
