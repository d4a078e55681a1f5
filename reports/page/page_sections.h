// PageSections: which results of a page have a section of their own, and which of these are open.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "scenarios/simulate/run_scenario.h"

namespace interlock {

/// Results that a page has sections for; of more than these, the ones that tell most.
constexpr std::size_t kMostDrawn = 48;

/// The sections of a page, by result. Example, 100 results of which number 70 is the fastest and 12
/// and 70 are the Pareto front of throughput against memory: sections 0 to 46 and 70 are drawn; 0,
/// 12 and 70 are open.
struct PageSections {
  std::vector<bool> drawn, open;
  std::vector<std::string> marks;  // "fastest", "Pareto front"; empty: neither
};

/// Returns the sections of `results`: the fastest that fits, the Pareto front and the first have
/// one whatever their number, then others in their order. Where there are few, all are open.
PageSections page_sections(const std::vector<ScenarioResult>& results);

}  // namespace interlock
