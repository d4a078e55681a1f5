// Reports: results as a terminal table, result JSON, an HTML page, and an SVG timeline.
// SPDX-License-Identifier: Apache-2.0
//
// Every function returns the whole text; writing it somewhere is the caller's business.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "scenarios/simulate/run_scenario.h"
#include "sim/plan/orders/schedule_text.h"

namespace interlock {

struct PictureStyle;

struct TableStyle {
  bool colour = false;  // ANSI
  int width = 100;      // columns of the terminal
};

/// Returns, for one result, its figures and a row for each device; for several, a row for each
/// scenario, speed-up over the first beside it. REQUIRES: results is not empty.
std::string terminal_table(const std::vector<ScenarioResult>& results, const TableStyle& style);

/// Returns the result contract (docs/result.md), "interlock-result/1". Deterministic but for
/// wall_time_s.
std::string result_json(const ScenarioResult& result);
/// Returns an array of them.
std::string result_json(const std::vector<ScenarioResult>& results);

/// Returns one self-contained offline page. REQUIRES: the logs of those were kept that have a
/// section (reports/page/page_sections.h).
std::string html_report(const std::vector<ScenarioResult>& results);

/// Returns the timeline of a few steps from the measured window. REQUIRES: the log was kept.
std::string svg_timeline(const ScenarioResult& result);
/// Returns the timelines of several runs below each other, to one scale of time; of one run as
/// above. REQUIRES: results is not empty; the logs were kept.
std::string svg_timelines(const std::vector<ScenarioResult>& results, const PictureStyle& style);

/// Returns the order of a step in PyTorch's text form (sim/plan/orders/schedule_text.h) with its
/// messages. Throws: Error if that form has no words for it.
std::string schedule_csv(const ScenarioResult& result, TextMessages messages);

}  // namespace interlock
