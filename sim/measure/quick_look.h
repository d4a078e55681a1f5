// quick_look: the step time and the memory of a program from a few steps, for searches.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/program/program.h"

namespace interlock {

/// Returns the mean length of the later half of a program's steps, by which ranks have settled, on
/// the rank where it is longest, in seconds, no links shared; infinite if the program cannot run.
/// REQUIRES: at least 4 steps.
double quick_step_time(const Program& program);

/// Returns the most bytes that each rank holds.
std::vector<double> quick_peaks(const Program& program);

}  // namespace interlock
