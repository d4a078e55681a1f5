// LossPoints: a loss curve in as many points as a picture can show.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "reports/result/training_curve.h"

namespace interlock {

/// One entry a point; NaN where a run has no such number.
struct LossPoints {
  std::vector<double> steps;      // at the middle of each stretch, as are the times
  std::vector<double> measured;   // seconds
  std::vector<double> simulated;  // seconds
  std::vector<double> loss;       // mean over the stretch
};

/// Cuts `run` into at most `most` stretches of equal length.
LossPoints loss_points(const TrainingCurve& run, std::size_t most);

/// Mean of values[begin, end). REQUIRES: begin < end.
double mean_of(const std::vector<double>& values, std::size_t begin, std::size_t end);

}  // namespace interlock
