// Scenario kernels: visits every kernel that a plan may run, and names classes of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <string>

#include "scenarios/plan/plan.h"

namespace interlock {

/// A share of the kernels' time that a user is told of.
inline constexpr double kWorthTelling = 0.01;

/// Calls `visit` with every kernel of the plan whose duration a device prices: those of
/// modules, of slices, of parts of mixed batches, and of heads where the strategy has them.
void visit_kernels(const Plan& plan, const std::function<void(const Work&)>& visit);

/// Returns the names of `classes`, with commas.
std::string class_list(const std::array<bool, kOpClasses>& classes);

}  // namespace interlock
