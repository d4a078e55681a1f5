// What "variation" of a scenario means for the devices and the engines of its plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "scenarios/plan/plan.h"

namespace interlock {

/// Returns what is slow all the time: stragglers, and ranks of other speeds.
std::vector<SlowDevices> always_slow(const VariationConditions& variation);

/// Says why ranks of `plan` differ from those for which they would stand under `unfolded`; empty if
/// they do not.
std::string variation_folding_problem(const Plan& plan, const Unfolded& unfolded);

/// Returns what engines are told of jitter, and of stragglers that are slow in some steps.
/// REQUIRES: `plan` has a variation; its folding is exact.
Variation variation_of(const Plan& plan);

}  // namespace interlock
