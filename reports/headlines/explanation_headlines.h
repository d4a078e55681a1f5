// Explanation headlines: what a step's time and its bubbles come from, in words.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reports/headlines/headlines.h"

namespace interlock {

/// The critical path, and a note to the bubble; none if the result has no explanation.
std::vector<Headline> explanation_headlines(const ScenarioResult& result);

/// "waiting for gradients 12.0%, drain 3.1%": means over devices, as shares of a step; empty
/// without an explanation, or a bubble.
std::string bubble_words(const Metrics& metrics);

/// A row for each device: the shares of a step that it is idle, by cause. No columns without an
/// explanation.
Grid bubble_grid(const ScenarioResult& result);

}  // namespace interlock
