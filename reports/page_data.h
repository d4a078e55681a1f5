// PageData: what the scripts of the HTML page draw, as JSON with packed arrays.
// SPDX-License-Identifier: Apache-2.0
//
// Spans, messages and memory changes are structures of arrays in base64, grouped by device or wire;
// web/data.js is the reader. Times are in seconds since the run began.
#pragma once

#include <cstdint>
#include <string>

#include "reports/excerpt.h"
#include "scenarios/run_scenario.h"

namespace interlock {

/// The data of one scenario, for the stretch that `excerpt` names. Safe inside a script element.
std::string page_data(const ScenarioResult& result, const Excerpt& excerpt);

}  // namespace interlock
