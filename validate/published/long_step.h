// Steps of many micro-batches, predicted by two shorter ones.
// SPDX-License-Identifier: Apache-2.0
//
// In the middle of a flushed step the schedule is a loop, and one more turn of it takes as long as
// the one before. sim/measure/periods.h leaves turns out where that is exact to the last digit;
// here, where links are shared and times settle only nearly, it is taken for granted. Tests hold
// the result to that of the whole step.
//
// Example: 1F1B on four ranks with 512 micro-batches. shorter_steps() are {13, 17}. If those take
// 32 s and 40 s, a turn takes 2 s, and the whole step 40 + 2 x (512 - 17) = 1,030 s.
#pragma once

#include <optional>

#include "scenarios/simulate/run_scenario.h"

namespace interlock {

/// The numbers of micro-batches of two shorter steps.
struct ShorterSteps {
  int few = 1, more = 1;
};
/// Returns nothing if the step is too short to gain by it, or its schedule is no loop.
std::optional<ShorterSteps> shorter_steps(const LaidOut& laid_out);

struct LongStepResult {
  ScenarioResult result;  // of the whole step, or of the longer one of two shorter ones
  Seconds step_time;      // of the whole step
};
/// Completes `laid_out` and simulates it.
LongStepResult run_long_step(const LaidOut& laid_out);

}  // namespace interlock
