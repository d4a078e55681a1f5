// TrainingPage: losses of several runs as one offline page.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reports/charts/training_report.h"

namespace interlock {

/// Returns the table of training_table, and the chart of training_chart, whose values show beside
/// the pointer.
std::string training_html(const std::vector<TrainingCurve>& curves);

/// Returns what ran as part of a page: tables of devices and versions, of clocks, and of products.
std::string execution_html(const ExecutionRecord& record);

}  // namespace interlock
