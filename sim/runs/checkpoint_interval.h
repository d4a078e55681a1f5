// How often to write a checkpoint: the published closed forms, and the optimum of the exact one.
// SPDX-License-Identifier: Apache-2.0
//
// All assume failures at a constant rate and that training goes back to the last checkpoint.
//
// Example: writing takes 1 min and something fails every 3 h: Young's interval is sqrt(2 x 1 x 180)
// = 19.0 min.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace interlock {

/// The costs of checkpoints and failures; an interval is the training between two checkpoints.
struct CheckpointCosts {
  Seconds write;    // of one checkpoint; training stands meanwhile
  Seconds restart;  // after a failure, until training goes on
  Seconds mean_time_between_failures;
};

/// Returns sqrt(2 write M), M the mean time between failures: the first-order optimum (J. W. Young,
/// A first order approximation to the optimum checkpoint interval, CACM 17(9), 1974).
Seconds young_interval(const CheckpointCosts& costs);

/// Returns sqrt(2 write M) (1 + x / 3 + x^2 / 9) - write with x = sqrt(write / 2M) where write <
/// 2M, else M (J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart
/// dumps, Future Generation Computer Systems 22(3), 2006; the form recalled, its figures 3 to 5
/// met).
Seconds daly_interval(const CheckpointCosts& costs);

/// Returns the expected time for `work` of training in intervals of `interval`, the last one
/// written too: M e^(restart / M) (e^((interval + write) / M) - 1) work / interval. Failures may
/// hit writes and restarts as well. (Daly's complete cost function; it follows from memorylessness:
/// an attempt of length s takes (e^(s/M) - 1) (M + E) in all, with E = M (e^(restart/M) - 1) for
/// each restart.)
Seconds expected_run_time(Seconds work, Seconds interval, const CheckpointCosts& costs);

/// Returns the interval of the least expected time, found by search; 0 if checkpoints cost nothing.
Seconds optimal_interval(const CheckpointCosts& costs);

/// Returns the whole number of steps, at least 1, of the least expected time.
std::int64_t optimal_interval_steps(Seconds step_time, const CheckpointCosts& costs);

}  // namespace interlock
