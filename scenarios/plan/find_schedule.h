// find_schedule: the order of work that a search finds where the schedule is "auto".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scenarios/plan/plan.h"

namespace interlock {

/// Returns a schedule that can be made: the hand-made one that nothing beats, or an order of its
/// own. REQUIRES: that of `plan` is to be found.
/// Throws: Error if no order fits into the memory of a device, saying what would.
SchedulePolicy find_schedule(const Plan& plan);

}  // namespace interlock
