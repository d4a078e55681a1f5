// Swarm figures: what peers on slow links come to, for people.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "reports/headlines/figures.h"

namespace interlock {

/// The headline numbers of a swarm; none if the scenario has none.
std::vector<Figure> swarm_figures(const ScenarioResult& result);

}  // namespace interlock
