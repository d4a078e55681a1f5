// Mean, standard deviation and percentiles of a few values.
// SPDX-License-Identifier: Apache-2.0
#include "base/spread.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace interlock {
namespace {

double percentile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - std::floor(at)) * (sorted[above] - sorted[below]);
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  CHECK(!values.empty(), "a spread needs a value");
  std::sort(values.begin(), values.end());
  Spread spread;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) spread.mean += value / count;
  for (const double value : values) {
    spread.deviation += (value - spread.mean) * (value - spread.mean);
  }
  spread.deviation = values.size() > 1 ? std::sqrt(spread.deviation / (count - 1)) : 0;
  spread.p5 = percentile(values, 0.05);
  spread.p50 = percentile(values, 0.5);
  spread.p95 = percentile(values, 0.95);
  return spread;
}

}  // namespace interlock
