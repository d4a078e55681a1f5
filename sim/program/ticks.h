// Ticks: the whole numbers in which engines count time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "sim/program/program.h"

namespace interlock {

inline double in_ticks(const Program& program, Seconds duration) {
  return std::nearbyint(duration.value() * program.ticks_per_second);
}
inline Seconds in_seconds(const Program& program, double ticks) {
  return Seconds(ticks / program.ticks_per_second);
}

/// Returns the finest 10^k ticks a second, but no more than `most`, in which no run of the program
/// is too long to be summed up exactly.
double finest_ticks(const Program& program, double most);

/// Rounds every duration to the finest 10^-k s, but no finer than `most_ticks_per_second`, in which
/// no run of the program is too long to be summed up exactly.
void round_durations(Program& program, double most_ticks_per_second);

}  // namespace interlock
