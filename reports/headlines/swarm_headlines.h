// Swarm headlines: what peers on slow links come to, for people.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "reports/headlines/headlines.h"

namespace interlock {

/// Returns the headline numbers of a swarm; none if the scenario has none.
std::vector<Headline> swarm_headlines(const ScenarioResult& result);

}  // namespace interlock
