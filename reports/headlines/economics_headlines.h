// Economics headlines: energy, money and ranges of results, for people and as JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "reports/headlines/headlines.h"

namespace interlock {

/// Returns the headline number of a range; nothing if nothing is known of one.
std::vector<Headline> range_headlines(const Confidence& confidence);
/// Says that predictions of two runs of one table err by `error` from each other.
std::string error_between_words(double error);
/// Returns the headline numbers of a range, and of a scenario that asks for money or has a goal.
std::vector<Headline> economics_headlines(const ScenarioResult& result);
/// Adds columns to a row for each of `results`: the ends of ranges that were drawn, if any were.
void add_range_columns(const std::vector<ScenarioResult>& results, Grid& grid);
/// Adds columns of goals and prices, if a result has one.
void add_economics_columns(const std::vector<ScenarioResult>& results, Grid& grid);
/// Adds "energy_j", "energy", "cost", "goal", "range" and "extrapolates".
void add_economics(nlohmann::ordered_json& json, const ScenarioResult& result);
/// Adds "range" and "extrapolates".
void add_confidence(nlohmann::ordered_json& json, const Confidence& confidence);

}  // namespace interlock
