// ProgramOfSteps: programs of the same training with other numbers of steps or micro-batches.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "sim/program/program.h"

namespace interlock {

/// Lowers for a number of steps, with ticks no finer than said; the search for the steady state
/// asks for runs of several lengths, whose durations must be rounded alike. kAnyTicks: as fine as
/// they may be.
using ProgramOfSteps = std::function<Program(int steps, double most_ticks_per_second)>;
constexpr double kAnyTicks = 1e18;  // a second

/// A flushed schedule whose order is a loop in the middle of its step: with `period` micro-batches
/// more, the loop makes one more turn, and nothing else changes.
struct LongStep {
  int micro_batches = 1, period = 1;
  int stages = 1;                                          // its program has these or more
  std::function<ProgramOfSteps(int micro_batches)> lower;  // with another M
};

}  // namespace interlock
