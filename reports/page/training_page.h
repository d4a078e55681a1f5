// TrainingPage: losses of several runs as one offline page.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reports/charts/training_report.h"

namespace interlock {

/// The table of training_table, and losses against steps, measured time and simulated time, whose
/// values show at a cursor. Points are means over at most a five-hundredth of a run.
std::string training_html(const std::vector<TrainingCurve>& curves);

}  // namespace interlock
