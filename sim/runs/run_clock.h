// RunClock: the whole ticks in which a training run counts its time, so that sums are exact.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "sim/runs/training_run.h"

namespace interlock {

using RunTicks = std::int64_t;

/// Decimal ticks of a picosecond or more, in which a thousand times the run fits.
/// Example: 1,000 steps of 1 s and nothing else have ticks of 1 ps and a horizon of 1e18 ticks,
/// which are 1e6 s; a million such steps have ticks of 1 ns.
struct RunClock {
  double ticks_per_second = 1;
  RunTicks horizon = 0;  // a run that is longer makes no headway

  RunTicks ticks(Seconds time) const;  // at most `horizon`, and one beyond for what is later
  Seconds seconds(RunTicks ticks) const;
};

RunClock make_run_clock(const RunPlan& plan);

}  // namespace interlock
