// TimelinePanel: the lanes of one run in a still timeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reports/words/excerpt.h"
#include "scenarios/simulate/run_scenario.h"

namespace interlock {

inline constexpr double kTimelineWidth = 1200, kTimelineLeft = 130, kTimelineRight = 20;
inline constexpr double kTimelinePlot = kTimelineWidth - kTimelineLeft - kTimelineRight;

/// The messages from one rank to another, which have a thin lane below the devices.
struct MessageLane {
  int from = 0, to = 0;
  std::vector<const Transfer*> transfers;
};

struct TimelinePanel {
  const ScenarioResult* result = nullptr;
  Excerpt excerpt;
  double top = 0, bottom = 0;  // of the lanes in the picture
  int lanes = 1;
  double lane = 28;  // height, gap included
  std::vector<MessageLane> messages = {};
  std::vector<int> devices = {};  // by rank, as the machine counts

  const Program& program() const { return result->measurement.program; }
  double x(Seconds time) const {
    return kTimelineLeft + kTimelinePlot * ((time - excerpt.begin) / (excerpt.end - excerpt.begin));
  }
  double y(int rank) const { return top + lane * rank; }
  double bar_height() const { return lane > 8 ? lane - 4 : lane * 0.75; }
};

/// A few steps of `result` from the measured window, lanes from `top` downwards.
TimelinePanel step_panel(const ScenarioResult& result, double top);
/// The first `length` of the measured window, without messages.
TimelinePanel window_panel(const ScenarioResult& result, double top, Seconds length);
/// How many ops it shows.
int count_bars(const TimelinePanel& panel);

/// Names of devices, bars, their labels, and messages.
std::string panel_svg(const TimelinePanel& panel);

/// The most bars that a picture has, if some of them have labels.
inline constexpr int kMostLabelledBars = 4000;  // of about 100 bytes

}  // namespace interlock
