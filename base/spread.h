// Spread: what a number does over runs that differ in their seed only.
// SPDX-License-Identifier: Apache-2.0
//
// Example: 1, 2, 3, 4 and 10 have the mean 4, the deviation 3.54, the median 3; p95 is 8.8, four
// fifths of the way from 4 to 10.
#pragma once

#include <vector>

namespace interlock {

struct Spread {
  double mean = 0;
  double deviation = 0;  // of a sample: its sum of squares over n - 1; 0 for one run
  double p5 = 0, p50 = 0, p95 = 0;
};

/// Percentiles lie between neighbours in proportion: of n sorted values, share p is at (n - 1) p.
/// REQUIRES: there is a value.
Spread spread_of(std::vector<double> values);

}  // namespace interlock
