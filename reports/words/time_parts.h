// TimeParts: what a step of a device consists of, each second once, with its words and its looks.
// SPDX-License-Identifier: Apache-2.0
//
// Ops come as the metrics count them; where a run was explained, idle time is divided by cause.
#pragma once

#include <array>
#include <vector>

#include "reports/words/palette.h"
#include "sim/measure/metrics.h"

namespace interlock {

struct TimePart {
  const char* name;    // "forward", "waiting for gradients"
  const char* colour;  // "#rrggbb"
  Hatch hatch = Hatch::None;
};

/// Returns ops first, then exposed communication, which of runs that were explained is divided into
/// exchanges inside ops and messages on their way, then the causes of idle time, and the bubble.
const std::vector<TimePart>& time_parts();

/// Returns what a device does meanwhile, in tables and pictures alike: "waiting for gradients".
const char* words_of(BubbleCause cause);

/// Returns shares of a step, one for each of time_parts(), which add up to 1. `time`: of
/// DeviceMetrics; `bubbles`: seconds of a step of `step_time` seconds, or null.
/// Example: in a step of 11 ms a device has 2 ms of forwards and 4 ms of backwards, and waits 2 ms
/// for messages and 3 ms for gradients. Those parts are 2, 4, 2 and 3 elevenths; without `bubbles`
/// "exposed communication" is 2 elevenths and "bubble" 3.
std::vector<double> part_shares(const std::array<double, kTimeUses>& time, const Bubbles* bubbles,
                                double step_time);

}  // namespace interlock
