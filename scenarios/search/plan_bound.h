// StepBound: what a step takes at least, provably, without simulating it.
// SPDX-License-Identifier: Apache-2.0
//
// A device runs one op at a time, so a step lasts no shorter than the ops of one device, with the
// exchanges for which an op stands still. Under a flush more is known. Let a device begin a step
// with a forward of stage s, and end its backwards with one of stage t: before comes the forward of
// that micro-batch through all stages below s, behind comes a backward through all below t, and
// then what the device of stage 0 still does before its next step. These follow each other, so
// their sum is no more than a step.
// Memory: states stay; the stash of a micro-batch lives from its forward to its last backward on a
// stage, in an order that is known beforehand.
#pragma once

#include "base/units.h"
#include "scenarios/load/scenario.h"

namespace interlock {

struct StepBound {
  Seconds time;  // of a step
  Bytes memory;  // of the fullest device
  Seconds busy;  // of kernels in a step, a mean over the devices
};

/// What is known of all schedules that a scenario may have.
struct ScheduleFamily {
  double overlap = 0;       // the most that one lets ops overlap, see SchedulePolicy
  bool keeps_stash = true;  // each keeps all that a forward made until its backward
};

/// Of every scenario that differs from this one in partition, placement and schedule only.
StepBound bound_layout(const Scenario& scenario, const ScheduleFamily& family);
/// Of this one.
StepBound bound_plan(const Scenario& scenario);

}  // namespace interlock
