// Held-out errors: how wrong a fit is about kernels that it has not seen.
// SPDX-License-Identifier: Apache-2.0
//
// The largest 15 % of each class are held out, to see how far the fit can be stretched, and of the
// rest one in five at random, to see how well it fills gaps. What is shipped is fitted to all
// samples; the errors that are told of it are those of the fit to the others.
//
// Example: of 100 products the 15 with the most flops are Largest, and of the other 85 about 17 are
// Interior. The fit to the 68 that are left is judged by each of both parts, in a row of its own.
#pragma once

#include <vector>

#include "base/error_summary.h"
#include "hardware/devices/calibrated_model.h"
#include "validate/calibration/sample.h"

namespace interlock {

enum class SamplePart { Training, Interior, Largest };

/// Returns the part of each sample, in order. Classes of fewer than ten samples are all for
/// training.
std::vector<SamplePart> divide_samples(const std::vector<Sample>& samples, int seed);

/// The errors of one class in one part, by the roofline alone and as the simulator would price it.
struct HeldOutErrors {
  Precision precision = Precision::Fp32;
  OpClass op_class = OpClass::Gemm;
  SamplePart part = SamplePart::Interior;
  ErrorSummary roofline, kernel;
  double known = 0;  // share whose kernel the simulator knew
};

/// Returns the errors by precision, class and part. Parts without samples are left out.
std::vector<HeldOutErrors> held_out_errors(const std::vector<Sample>& samples,
                                           const std::vector<StreamPoint>& stream, int seed);

}  // namespace interlock
