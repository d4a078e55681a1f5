// Means over stretches of a run.
// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/loss_points.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace interlock {
namespace {

/// When `steps` steps were done.
double end_of(const TrainingCurve& run, std::size_t steps) {
  if (run.ends.empty()) return std::nan("");
  return steps == 0 ? 0 : run.ends[steps - 1].value();
}

}  // namespace

double mean_of(const std::vector<double>& values, std::size_t begin, std::size_t end) {
  const auto first = values.begin();
  const double sum = std::accumulate(first + static_cast<std::ptrdiff_t>(begin),
                                     first + static_cast<std::ptrdiff_t>(end), 0.0);
  return sum / static_cast<double>(end - begin);
}

LossPoints loss_points(const TrainingCurve& run, std::size_t most) {
  const std::size_t steps = run.losses.size(), points = std::min(steps, most);
  LossPoints result;
  for (std::size_t p = 0; p < points; ++p) {
    const std::size_t begin = p * steps / points, end = (p + 1) * steps / points;
    const double middle = (static_cast<double>(begin) + static_cast<double>(end)) / 2;
    result.steps.push_back(middle);
    result.measured.push_back((end_of(run, begin) + end_of(run, end)) / 2);
    result.simulated.push_back(middle * run.simulated_step.value());
    result.loss.push_back(mean_of(run.losses, begin, end));
  }
  return result;
}

}  // namespace interlock
