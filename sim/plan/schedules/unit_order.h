// Orders made of units: a group of micro-batches whose passes have times, and groups that follow.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

/// One forward or backward of the first unit on a rank, at a time of its own.
struct Pass {
  int time = 0;
  bool forward = true;
  int stage = 0, micro_batch = 0;
};

/// Units of `size` micro-batches, each `interval` after the one before.
struct UnitGrid {
  int size = 1, interval = 1;
};

/// Appends the passes of all units of a step in order of time, earlier units first at a tie; a last
/// unit that is not full lacks its last micro-batches. REQUIRES: times of `unit` are at least 0.
void append_units(RunWriter& order, const ScheduleInputs& inputs, const std::vector<Pass>& unit,
                  const UnitGrid& grid);

}  // namespace interlock
