// PageLanes: messages and collectives for the scripts of the HTML page, packed as page_data.h says.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "reports/excerpt.h"
#include "scenarios/run_scenario.h"

namespace interlock {

/// The messages of each wire.
nlohmann::ordered_json wires_json(const ScenarioResult& result, const Excerpt& excerpt);
/// The collectives of each lane, but for those that are part of an op.
nlohmann::ordered_json lanes_json(const ScenarioResult& result, const Excerpt& excerpt);
/// What each collective is: kind, stage, bytes.
nlohmann::ordered_json collectives_json(const Program& program);

}  // namespace interlock
