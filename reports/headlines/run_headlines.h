// Run headlines: what a whole training run comes to, for people and as JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "reports/headlines/headlines.h"

namespace interlock {

/// Returns the headline numbers of a run; none if the scenario has none.
std::vector<Headline> run_headlines(const ScenarioResult& result);

}  // namespace interlock
