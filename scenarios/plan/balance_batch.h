// Sizes of micro-batches where a document leaves them open: one for the whole step, or a mix.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scenarios/plan/plan.h"

namespace interlock {

/// Returns the plan of least span among those of every size that divides the batch, and of steps
/// that mix sizes if these are faster still. REQUIRES: scenario.balances_batch; the document says
/// all that it does.
Plan balance_batch(const Question& question);

}  // namespace interlock
