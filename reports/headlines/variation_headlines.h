// Variation headlines: how far steps differ, for people and as JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "reports/headlines/headlines.h"

namespace interlock {

/// Returns the headline number of steps that differ; none where all are alike.
std::vector<Headline> variation_headlines(const ScenarioResult& result);
/// Adds the columns of such steps to a row for each of `results`, if any has some.
void add_variation_columns(const std::vector<ScenarioResult>& results, Grid& grid);
/// Returns keys as docs/result.md has them. REQUIRES: result.varied.
nlohmann::ordered_json variation_json(const ScenarioResult& result);

}  // namespace interlock
