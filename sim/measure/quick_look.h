// quick_look: the step time and the memory of a program from a few steps, for searches.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/run/program.h"

namespace interlock {

/// Steps that a program must have to be looked at: by the last ones ranks have settled.
inline constexpr int kQuickSteps = 4;

/// Mean length of the last two of `kQuickSteps` steps, in seconds, no links shared; infinite if
/// the program cannot run.
double quick_step_time(const Program& program);

/// The most bytes that each rank holds.
std::vector<double> quick_peaks(const Program& program);

}  // namespace interlock
