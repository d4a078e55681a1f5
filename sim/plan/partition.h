// Partition: which modules make up each stage.
// SPDX-License-Identifier: Apache-2.0
//
// Example: five modules that take 4, 1, 1, 1 and 1 ms, in two stages.
//   uniform    boundaries 0, 3, 5: the stages take 6 and 2 ms
//   balanced   boundaries 0, 1, 5: the stages take 4 and 4 ms
#pragma once

#include <functional>
#include <vector>

#include "base/units.h"

namespace interlock {

/// Stage s holds modules [boundaries[s], boundaries[s + 1]); boundaries has stages + 1 entries.
struct Partition {
  std::vector<int> boundaries;
  int stages() const { return static_cast<int>(boundaries.size()) - 1; }
};

/// Stages of equal length as far as possible; the first ones take what is left over.
/// REQUIRES: 1 <= stages <= modules.
Partition uniform_partition(int modules, int stages);

/// Busy time of modules [first, last) as stage `stage`.
using StageTime = std::function<Seconds(int stage, int first, int last)>;

/// The waits of stages that hold one micro-batch at a time: each begins the next one when the
/// gradient of the loss that trains it has come back.
struct StageLoops {
  /// (stages) The stage of that loss; a stage that is its own does not wait.
  std::vector<int> tops;
  /// Returns what modules [first, last) as `stage` add to the loop of stage `loop`, <= `stage` <=
  /// tops[loop]. But for the stage `tops[loop]`, grows with the modules.
  std::function<Seconds(int loop, int stage, int first, int last)> time;
};

/// Cuts the chain so that the busiest stage is as little busy as possible: the exact optimum by
/// dynamic programming, O(stages * modules^2) evaluations. Among equal optima the one whose
/// last cut is earliest; what lies before it is cut by the same rule. `least` ends the search:
/// `time` or less, and grows as a stage begins earlier. Without it `time` is to grow so. REQUIRES:
/// 1 <= stages <= modules. Source: PipeDream (SOSP 2019), section 3.1.
Partition balanced_partition(int modules, int stages, const StageTime& time,
                             const StageTime& least = {});

/// Cuts the chain so that the longest of all loops and busy times is as short as possible, to one
/// part in a million, and among such cuts the busiest stage as little busy as possible; the best
/// that was found where more than two loops go through a stage.
/// `start` is a cut to begin with. REQUIRES: there are loops.
Partition looped_partition(const Partition& start, const StageTime& time, const StageLoops& loops);

}  // namespace interlock
