// The tables that planners read: errors by machine, framework and model, and beside other programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "reports/headlines/headlines.h"
#include "validate/published/accuracy.h"

namespace interlock {

/// Returns a line for each device, framework and kind of model, by rows that nothing was fitted on.
/// First come results of MLPerf and tests of Megatron-LM.
Grid planner_grid(const Accuracy& accuracy);
/// Returns what its columns mean.
std::string planner_note();
/// Figures that other programs say of themselves, and the errors of this one on the same rows.
Grid rival_grid(const Accuracy& accuracy);
/// Returns what is known of them beside.
std::string rival_note();

}  // namespace interlock
