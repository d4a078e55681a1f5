// ScenarioMarkup: the parts of a page that show one scenario, for reports and for the studio.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "scenarios/simulate/run_scenario.h"

namespace interlock {

/// How much of a scenario is drawn.
struct DrawnRoom {
  std::int64_t spans = 1'000'000;
  std::size_t bars = 64;  // devices, in the chart of where time goes
  std::string id;         // unlike that of the page's other scenarios
};

struct ScenarioMarkup {
  std::string origin;     // which scenario it is, in lines
  std::string headlines;  // what must be known before them, and the numbers
  std::string tables;     // devices, where their time goes, links
  std::string excerpt;    // which part of the run the charts hold; empty: all of it
  std::string data;       // JSON: what the charts draw, see page_data.h
};

/// Returns the parts of `result`. REQUIRES: its log was kept.
ScenarioMarkup scenario_markup(const ScenarioResult& result, const DrawnRoom& room);

}  // namespace interlock
