// Scale: one unit for a whole column or axis, and numbers written in it.
// SPDX-License-Identifier: Apache-2.0
//
// Example: for 0.0123 s and 0.5 s the scale is {"ms", 0.001, 1}, which writes them as 12.3 and
// 500.0.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"

namespace interlock {

/// A unit and its size in SI: {"ms", 0.001}.
struct Scale {
  std::string unit;
  double size = 1;
  int decimals = 0;  // for values in this unit
};

/// Return the unit that base/text would choose for the largest value (seconds unless every other
/// value has a minute, an hour or a day), with decimals for the smallest that is not 0 (three
/// digits, but at most three decimals). Values are in SI.
/// REQUIRES: values is not empty.
Scale scale_of_seconds(const std::vector<double>& values);
Scale scale_of_bytes(const std::vector<double>& values);
Scale scale_of_joules(const std::vector<double>& values);
/// Returns a scale for numbers that are not to be scaled.
Scale scale_of_numbers(const std::vector<double>& values, const std::string& unit);

/// Stands in a cell where nothing is known.
inline constexpr const char* kUnknown = "–";
/// Less of a step than this share is rounding.
inline constexpr double kLeastShare = 5e-4;

/// Returns `value` with `decimals` decimals, never in exponent form.
std::string fixed(double value, int decimals);
/// Returns "+1.5" for 0.015.
std::string signed_percent(double fraction);
/// Returns `value` (SI) as a number in the unit of `scale`.
std::string scaled(double value, const Scale& scale);

/// Round numbers between 0 and `range`, both in one unit: at most `most` + 1 of them.
struct Ticks {
  std::vector<double> at;
  int decimals = 0;
};
/// REQUIRES: range > 0, most >= 1.
Ticks ticks(double range, int most);

}  // namespace interlock
