// Held-out errors: how wrong a fit is about kernels that it has not seen.
// SPDX-License-Identifier: Apache-2.0
//
// Of each class the largest 15 % are held out, to see how far the fit can be stretched, and of the
// rest one in five at random, to see how well it fills gaps. What is shipped is fitted to all
// samples; its errors are said to be those of the fit to the others.
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

/// By precision, class and part. Parts without samples are left out.
std::vector<HeldOutErrors> held_out_errors(const std::vector<Sample>& samples,
                                           const std::vector<StreamPoint>& stream, int seed);

}  // namespace interlock
