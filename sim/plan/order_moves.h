// Moves: small changes of an order that keep what each rank can see of its dependencies.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/random.h"
#include "sim/plan/schedule.h"

namespace interlock {

/// Puts one op of one rank a few places earlier or later, as far as the ops of its micro-batch and
/// the same ops of other micro-batches let it. What ranks wait for from each other is not looked
/// at: a moved order may be one that cannot run.
void move_op(std::vector<std::vector<Op>>& order, Random& random);

}  // namespace interlock
