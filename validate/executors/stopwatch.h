// Stopwatch: time on the wall, and time that this thread was on a processor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include "base/units.h"

namespace interlock {

/// Runs from when it is made.
class Stopwatch {
 public:
  Stopwatch() : wall_(read(CLOCK_MONOTONIC)), cpu_(read(CLOCK_THREAD_CPUTIME_ID)) {}
  Seconds wall() const { return Seconds(read(CLOCK_MONOTONIC) - wall_); }
  Seconds cpu() const { return Seconds(read(CLOCK_THREAD_CPUTIME_ID) - cpu_); }

 private:
  static double read(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  double wall_, cpu_;
};

}  // namespace interlock
