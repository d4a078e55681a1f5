// bound_plan: what a step takes at least, provably, without simulating it.
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

#include "scenarios/plan/step_time.h"

namespace interlock {

/// Bounds a step of `plan`: Grade::PlanBound. REQUIRES: its order is known, and no workload.
StepEstimate bound_plan(const Plan& plan);

}  // namespace interlock
