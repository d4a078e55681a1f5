// list_inputs: what the list scheduler is told of a run, read off the program that lowering makes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/lower/lower.h"
#include "sim/plan/orders/list_order.h"

namespace interlock {

/// Returns ops, times, messages and bytes of a run of `shape`, with `capacity` (ranks) bytes on the
/// ranks. What `inputs` says of the schedule itself is not read.
/// REQUIRES: one copy of the model, whole sequences.
ListInputs list_inputs(LowerInputs inputs, const ScheduleInputs& shape,
                       const std::vector<double>& capacity);

}  // namespace interlock
