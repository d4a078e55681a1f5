// Run figures: what a whole training run comes to, for people and as JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "reports/headlines/figures.h"

namespace interlock {

/// The headline numbers of a run; none if the scenario has none.
std::vector<Figure> run_figures(const ScenarioResult& result);

}  // namespace interlock
