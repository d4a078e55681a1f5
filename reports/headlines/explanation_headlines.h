// Explanation headlines: what a step's time and its idle time come from, in words.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reports/headlines/headlines.h"

namespace interlock {

/// Returns the critical path by its parts; nothing if the result has no explanation.
std::vector<Headline> explanation_headlines(const ScenarioResult& result);

/// Returns the idle share of a step, mean over devices, with all its parts: the bubble by cause,
/// messages on their way, exchanges inside ops. Without an explanation: bubble and communication.
Headline idle_headline(const Metrics& metrics);

/// Returns a row for each device: the shares of a step that it is idle, by cause. No columns
/// without an explanation.
Grid idle_grid(const ScenarioResult& result);

}  // namespace interlock
