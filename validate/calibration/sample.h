// Sample: one kernel that was measured, and how long it took.
// SPDX-License-Identifier: Apache-2.0
//
// Example: readings of 10.0, 10.1, 10.2, 10.4 and 10.8 us make a time of 10.2 us, between low 10.0
// and high 10.8 us, with a spread of (10.4 - 10.1) / 10.2 = 0.029.
#pragma once

#include <string>
#include <vector>

#include "base/work.h"

namespace interlock {

struct Sample {
  Precision precision = Precision::Fp32;
  Work work;           // class, role, shape, flops, bytes, launches
  std::string kernel;  // of the library, as far as it tells; empty: unknown
  Seconds time;        // the median of what the device was busy with it
  Seconds low, high;   // 95 % confidence interval of that median, by order statistics
  Seconds wall;        // the median by the clock on the wall
  double spread = 0;   // the middle half of the readings, over their median
};

}  // namespace interlock
