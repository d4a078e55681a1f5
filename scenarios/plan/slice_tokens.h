// Cuts sequences into slices, and says how long the slices of a step take by the rule for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "scenarios/plan/plan.h"

namespace interlock {

/// Returns the slices of each micro-batch by `rule`. REQUIRES: `plan` is complete but for them.
std::vector<TokenSlice> cut_sequences(const Plan& plan, const SliceRule& rule);

/// Returns how long a step takes by the rule that balances slices, so without transfers and update.
/// REQUIRES: micro-batches of one size.
Seconds planned_span(const Plan& plan);

struct PartsPlan {
  std::vector<BatchPart> parts;  // empty: those of least span are all of one size
  Seconds span;
};

/// Returns the parts, of the given sizes and each with slices of its own, that `samples` take least
/// time in. Searched in 32nds of a sequence; slices of the sizes found are then searched in 128ths.
PartsPlan plan_parts(const Plan& plan, std::vector<BatchPart> sizes, int samples);

}  // namespace interlock
