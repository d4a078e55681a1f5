// Young's and Daly's intervals, the expected time of a run, and its minimum by golden section.
// SPDX-License-Identifier: Apache-2.0
#include "sim/runs/checkpoint_interval.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace interlock {
namespace {

/// Returns the logarithm of the factor by which an interval of x mean times between failures, with
/// a write of `write` of them, stretches training: it neither overflows nor cancels.
double log_stretch(double x, double write) {
  const double s = x + write;
  return (s > 1 ? s + std::log1p(-std::exp(-s)) : std::log(std::expm1(s))) - std::log(x);
}

}  // namespace

Seconds young_interval(const CheckpointCosts& costs) {
  const Seconds mean = costs.mean_time_between_failures;
  return mean * std::sqrt(2 * (costs.write / mean));
}

Seconds daly_interval(const CheckpointCosts& costs) {
  const Seconds mean = costs.mean_time_between_failures;
  if (costs.write >= 2 * mean) return mean;
  const double x = std::sqrt(costs.write / (2 * mean));
  return young_interval(costs) * (1 + x / 3 + x * x / 9) - costs.write;
}

Seconds expected_run_time(Seconds work, Seconds interval, const CheckpointCosts& costs) {
  CHECK(interval > Seconds(0), "an interval takes time");
  const Seconds mean = costs.mean_time_between_failures;
  const double log_factor = costs.restart / mean + log_stretch(interval / mean, costs.write / mean);
  return work * std::exp(log_factor);
}

Seconds optimal_interval(const CheckpointCosts& costs) {
  const Seconds mean = costs.mean_time_between_failures;
  const double write = costs.write / mean;
  if (write <= 0) return Seconds(0);
  // The derivative vanishes where x = 1 - e^-(x + write), so x is below 1; and above
  // 1 - e^-write. Golden section keeps the minimum between `low` and `high`.
  constexpr double kGolden = 0.6180339887498949;
  double low = -std::expm1(-write), high = 1;
  for (int turn = 0; turn < 100; ++turn) {
    const double third = kGolden * (high - low);
    if (log_stretch(high - third, write) < log_stretch(low + third, write)) {
      high = low + third;
    } else {
      low = high - third;
    }
  }
  return mean * ((low + high) / 2);
}

std::int64_t optimal_interval_steps(Seconds step_time, const CheckpointCosts& costs) {
  CHECK(step_time > Seconds(0), "a step takes time");
  const double steps = optimal_interval(costs) / step_time;
  if (steps < 1) return 1;
  const auto below = static_cast<std::int64_t>(std::min(steps, 1e15));
  const auto cost = [&](std::int64_t count) {
    return expected_run_time(Seconds(1), static_cast<double>(count) * step_time, costs);
  };
  return cost(below + 1) < cost(below) ? below + 1 : below;
}

}  // namespace interlock
