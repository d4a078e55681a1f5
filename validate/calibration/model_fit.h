// Fits the levels of a CalibratedModel to samples.
// SPDX-License-Identifier: Apache-2.0
//
// Residuals are logarithms of predicted over measured, so that relative errors count, and short
// kernels as much as long ones. Parameters are logarithms too, weakly drawn to a first guess.
#pragma once

#include <vector>

#include "hardware/devices/calibrated_model.h"
#include "validate/calibration/sample.h"

namespace interlock {

/// Returns the time of plain streams without their launches, made to grow with the bytes: where a
/// shorter one took longer, both take the (geometric) mean. `samples`: of plain copies, in any
/// order. Example: copies of 1 MB and 2 MB take 12 us and 10 us, a launch 2 us. That leaves 10 us
/// and 8 us, so both points are sqrt(10 x 8) = 8.94 us.
std::vector<StreamPoint> fit_stream(const std::vector<Sample>& samples, Seconds launch);

/// A first guess, and how strongly parameters are drawn to it: the square of a logarithm that
/// weighs as much as the squared relative error of one sample.
struct RooflinePrior {
  SmoothRoofline guess;
  double ridge = 1e-4;
};

/// Returns a first guess of the roofline of `samples`, all of one class. REQUIRES: at least one
/// sample.
RooflinePrior first_guess(const std::vector<Sample>& samples);

/// Returns the smooth roofline of `samples`. Products keep the speed of the stream, which does not
/// show in them; all else has a share of it, and no sizes. REQUIRES: a sample at least, all of one
/// class.
SmoothRoofline fit_roofline(const std::vector<Sample>& samples,
                            const std::vector<StreamPoint>& stream, const RooflinePrior& prior);

/// Returns all levels: a roofline for each class and precision, a model for each kernel, and the
/// table.
CalibratedModel fit_model(const std::vector<Sample>& samples,
                          const std::vector<StreamPoint>& stream);

}  // namespace interlock
