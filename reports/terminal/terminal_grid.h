// Terminal grid: one step drawn in characters, a row for each device, columns in units of time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reports/headlines/headlines.h"
#include "reports/report.h"

namespace interlock {

struct GridStyle {
  bool colour = false;  // ANSI
  bool unicode = true;
  int width = 100;  // columns of the terminal
};

/// Returns the rows, each with a bar of its utilisation, an axis and a legend. A schedule that
/// flushes shows one whole step, and what overlaps it of the steps before and after only as shade;
/// any other shows the steady state. Where all times are multiples of one that leaves room, every
/// column is the same part of it; else the op that runs at the middle of a column is drawn. Where
/// the window leaves no room, bars become numbers, then nothing. REQUIRES: the log was kept.
std::string terminal_grid(const ScenarioResult& result, const GridStyle& style);

/// Returns the numbers that judge a schedule: step time, idle time, stash, memory. REQUIRES: the
/// log was kept.
std::vector<Headline> schedule_headlines(const ScenarioResult& result);

/// Returns the most micro-batches that each device holds between forward and weight gradients; one
/// that is under way on two of its stages counts twice. (ranks) REQUIRES: the log was kept.
std::vector<int> most_held(const ScenarioResult& result);

}  // namespace interlock
