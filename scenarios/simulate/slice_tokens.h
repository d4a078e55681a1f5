// How long the slices of a step take by the rule that balances them, and steps of several sizes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "scenarios/load/scenario.h"

namespace interlock {

/// By the rule, so without transfers and update. REQUIRES: micro-batches of one size.
Seconds planned_span(const Scenario& scenario);

struct PartsPlan {
  std::vector<BatchPart> parts;  // empty: those of least span are all of one size
  Seconds span;
};

/// The parts, of the given sizes and each with slices of its own, that `samples` take least time
/// in. Searched in 32nds of a sequence; slices of the sizes found are then searched in 128ths.
PartsPlan plan_parts(const Scenario& scenario, std::vector<BatchPart> sizes, int samples);

}  // namespace interlock
