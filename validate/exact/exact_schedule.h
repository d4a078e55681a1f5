// solve_exact: the shortest step of a small pipeline, proved by a mixed-integer program.
// SPDX-License-Identifier: Apache-2.0
//
// One stage a rank, equal micro-batches, backward split into I and W. Written as linear constraints
// for CBC (COIN-OR branch and cut), which is run as the program "cbc" where it is installed.
// Shares no code with the simulator or its search.
//
// Example: one micro-batch on two stages whose ops all take 1, without transfers: F0, F1, I1, I0
// and W0 come one after the other, W1 beside I0. The makespan is 5, and so is the bound.
#pragma once

#include <optional>
#include <vector>

namespace interlock {

struct ExactStage {
  double forward = 1, input = 1, weight = 1;  // any unit of time
  int held = 0;  // micro-batches between F and the end of W at most; 0: no limit
};

struct ExactInputs {
  std::vector<ExactStage> stages;
  double transfer = 0;  // between neighbours, either way
  int micro_batches = 1;
  double at_most = 0;  // a length that is known to be possible
  int seconds = 60;    // for CBC
};

struct ExactResult {
  double makespan = 0;  // of the best order found
  double bound = 0;     // no order is shorter; the makespan, if that was proved
};

/// Returns true if the program "cbc" can be found.
bool has_exact_solver();

/// Finds the shortest time from the first start to the last end of one step. Returns nothing if CBC
/// is not installed or found no order in its time.
std::optional<ExactResult> solve_exact(const ExactInputs& inputs);

}  // namespace interlock
