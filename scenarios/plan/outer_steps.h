// Outer steps of a plan: what workers exchange once in a cycle of steps (parallel.outer).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scenarios/plan/plan.h"
#include "sim/lower/lower.h"
#include "sim/measure/outer_cycle.h"

namespace interlock {

/// Lowers one outer step of one fragment on all ranks, which begin it together: the exchange
/// between workers, the update, and the gathering of weights within workers. `inputs`: of the steps
/// of `plan`. `exchanges`: else each worker does it for itself.
/// REQUIRES: plan.question.data_parallel.outer.any().
Program lower_outer_step(const Plan& plan, const LowerInputs& inputs, bool exchanges = true);

/// Adds the outer steps of `plan` to what was `measured` of its steps. `asked`: for what.
void add_outer_steps(const Plan& plan, const LowerInputs& inputs, const MeasureInputs& asked,
                     Measurement& measured);

}  // namespace interlock
