// Scale: one unit for a whole column or axis, and numbers written in it.
// SPDX-License-Identifier: Apache-2.0
#include "reports/words/scale.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/text.h"

namespace interlock {
namespace {

int decimals_for(const std::vector<double>& values, double size) {
  double least = 0;
  for (const double value : values) {
    if (value > 0 && (least == 0 || value < least)) least = value;
  }
  if (least == 0 || !std::isfinite(least)) return 0;
  return std::clamp(2 - static_cast<int>(std::floor(std::log10(least / size))), 0, 3);
}

/// Returns the scale of the unit in `written`, which is one of `values` as base/text formats it.
Scale scale_of(const std::string& written, const std::vector<double>& values) {
  const std::string unit = written.substr(written.rfind(' ') + 1);
  const auto one = parse_quantity("1 " + unit);
  CHECK(one && one->value > 0, "people's units can be read back: " + written);
  return {unit, one->value, decimals_for(values, one->value)};
}

}  // namespace

/// Minutes, hours and days are for columns in which no value is less than one of them.
Scale scale_of_seconds(const std::vector<double>& values) {
  const double most = *std::max_element(values.begin(), values.end());
  double shown = most;
  for (const double value : values) {
    if (most >= 1 && value > 0) shown = std::min(shown, std::max(value, 1.0));
  }
  return scale_of(format(Seconds(shown)), values);
}

Scale scale_of_bytes(const std::vector<double>& values) {
  return scale_of(format(Bytes(*std::max_element(values.begin(), values.end()))), values);
}

Scale scale_of_joules(const std::vector<double>& values) {
  return scale_of(format(Joules(*std::max_element(values.begin(), values.end()))), values);
}

Scale scale_of_numbers(const std::vector<double>& values, const std::string& unit) {
  return {unit, 1, decimals_for(values, 1)};
}

std::string fixed(double value, int decimals) {
  char text[400];  // the largest double has 309 digits
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string signed_percent(double fraction) {
  return (fraction > 0 ? "+" : "") + fixed(100 * fraction, 1);
}

std::string scaled(double value, const Scale& scale) {
  return fixed(value / scale.size, scale.decimals);
}

Ticks ticks(double range, int most) {
  const double raw = range / most;
  const double power = std::floor(std::log10(raw));
  double step = std::pow(10, power);
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    step = factor * std::pow(10, power);
    if (step >= raw * (1 - 1e-12)) break;
  }
  Ticks result{.decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)))};
  const int count = static_cast<int>(std::floor(range / step + 1e-9));
  for (int i = 0; i <= count; ++i) result.at.push_back(i * step);
  return result;
}

}  // namespace interlock
