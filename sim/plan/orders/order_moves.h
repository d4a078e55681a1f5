// Moves: small changes of an order that keep what each rank can see of its dependencies.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/random.h"
#include "sim/plan/schedules/schedule.h"

namespace interlock {

/// Puts the ops of one kind and stage, of one micro-batch or several in a row, a few places earlier
/// or later on a rank, or on several ranks that follow each other: as far as the ops of the same
/// micro-batch and the same ops of other micro-batches let them. What ranks wait for from each
/// other is not looked at: a moved order may be one that cannot run.
void move_ops(std::vector<std::vector<Op>>& order, int in_flight, Random& random);

}  // namespace interlock
