// Confidence: how far off a predicted step time may be, and what it rests on.
// SPDX-License-Identifier: Apache-2.0
//
// Example: GPT-2 XL on a DGX A100 (scenarios/examples/gpt2-xl-1f1b.json) is predicted to take 1.00
// s a step, and takes between 0.92 s and 1.32 s with probability 0.8.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace interlock {

/// The range that holds the step time with probability `level`, if its error is like those of
/// `basis`.
struct TimeRange {
  Seconds low, high;
  double level = 0.8;
  std::string basis;       // in words
  double typical = 0;      // the median of absolute errors that it rests on; 0: unknown
  double between = 0;      // such an error of one run's time over that of another of its table
  bool of_others = false;  // of all devices: too few runs were measured on this one
};

struct Confidence {
  std::optional<TimeRange> range;         // nothing: it rests on nothing that was measured
  std::vector<std::string> extrapolates;  // reasons why the range, or the prediction, may not hold
  std::string at_peak;    // one of them: kernels are priced at the peak rates; empty: none are
  bool borrowed = false;  // the range is that of devices that borrow their efficiencies
};

}  // namespace interlock
