// The metrics of a whole result: those of its step, and what is made of them afterwards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "sim/measure/metric_table.h"

namespace interlock {

/// Returns step_metrics(), then a row for each metric that is made after the measurement: energy,
/// money, ranges, runs, swarms, and what identifies a result. Their formulas are where the result
/// JSON is written; `pointer` says where.
const std::vector<MetricRow>& all_metrics();

/// Returns the row with this key, or null.
const MetricRow* find_metric(std::string_view key);

/// Adds every metric of a step that has a place of its own in the result JSON.
void add_step_metrics(nlohmann::ordered_json& json, const Metrics& metrics);

/// Returns whole bytes as whole numbers; only means over steps have fractions.
nlohmann::ordered_json bytes_json(Bytes bytes);

}  // namespace interlock
