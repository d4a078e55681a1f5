// Swarm headlines: what peers on slow links come to, for people.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "reports/headlines/headlines.h"

namespace interlock {

/// Returns the headline numbers of a swarm; none if the scenario has none.
std::vector<Headline> swarm_headlines(const ScenarioResult& result);
/// Adds columns of the rates of swarms, if a result has one.
void add_swarm_columns(const std::vector<ScenarioResult>& results, Grid& grid);

}  // namespace interlock
