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

/// First ops, then messages on their way, exchanges inside ops, and why the device is idle.
const std::vector<TimePart>& time_parts();

/// "waiting for gradients": what a device does meanwhile, in tables and pictures alike.
const char* words_of(BubbleCause cause);

/// Shares of a step, one for each of time_parts(), which add up to 1. `time`: of
/// DeviceMetrics; `bubbles`: seconds of a step of `step_time` seconds, or null.
std::vector<double> part_shares(const std::array<double, kTimeUses>& time, const Bubbles* bubbles,
                                double step_time);

}  // namespace interlock
