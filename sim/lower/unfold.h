// Unfold: which ranks of a mesh a program simulates, and inputs that have them all.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/lower/lower.h"

namespace interlock {

/// Returns `inputs` with a schedule, roles and costs of every replica that is simulated one by one;
/// costs are then those on the machine that holds a stage: (slices, stages).
LowerInputs unfold(LowerInputs inputs);

/// Returns the foldings of a mesh, those of fewest simulated ranks first; the last one folds
/// nothing.
std::vector<Unfolded> foldings(const Mesh& mesh);

}  // namespace interlock
