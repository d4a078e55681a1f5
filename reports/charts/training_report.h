// Training reports: loss against steps, and against the time that they took or would take.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reports/charts/line_chart.h"
#include "reports/headlines/headlines.h"
#include "reports/report.h"
#include "reports/result/training_curve.h"

namespace interlock {

std::vector<std::string> names_of(const std::vector<TrainingCurve>& curves);

/// Returns a row for each curve: first and last loss, step time measured and simulated, memory. The
/// first and the last loss are means of as many steps, at most 20, and no step is in both. Where
/// scenarios were trained under several seeds, a row for each scenario: mean and spread of the last
/// loss, and the time to the highest of them, which all scenarios come to.
Grid training_grid(const std::vector<TrainingCurve>& curves);
/// Explains its columns.
std::string training_note(const std::vector<TrainingCurve>& curves);
/// Returns the table for a terminal, and how old the weights of forwards were.
std::string training_table(const std::vector<TrainingCurve>& curves, const TableStyle& style);

/// Returns the JSON of the curves in the format "interlock-training/1", see docs/training.md.
std::string training_json(const std::vector<TrainingCurve>& curves);

/// The most points of a run in its chart; each is the mean over a stretch of steps.
inline constexpr std::size_t kMostLossPoints = 100;

/// Returns three panels side by side: loss against steps, measured time and simulated time. Curves
/// are means over seeds.
LineChart training_chart(const std::vector<TrainingCurve>& curves);

}  // namespace interlock
