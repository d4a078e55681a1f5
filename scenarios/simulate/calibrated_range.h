// Calibrated range: a step predicted many times, each time with kernels as far off as they were.
// SPDX-License-Identifier: Apache-2.0
//
// A measured kernel is off the model that was fitted to its class (or to its kernel of a library)
// by some ratio. In each draw every distinct kernel of the scenario that the model prices takes the
// ratio of one of the measured ones of its class, drawn with replacement; equal kernels take the
// same, since what a model misses in a shape it misses every time. Kernels that were measured
// themselves stay as they are. The step is then simulated again; see docs/ranges.md.
#pragma once

#include <vector>

#include "scenarios/plan/plan.h"
#include "scenarios/ranges/confidence.h"

namespace interlock {

inline constexpr int kFewestDraws = 20;

/// Measured times over those of the model that prices such kernels, by class and level; larger than
/// the fit left them by what its parameters took up.
/// Example: two measured kernels of a class took 0.9 and 1.1 times what the model says. A step of
/// two such kernels of 1 ms and 2 ms, drawn often, takes 2.7, 2.9, 3.1 or 3.3 ms, each as likely.
struct KernelRatios {
  std::vector<double> kernel, roofline;
};
KernelRatios ratios_of(const CalibratedModel& model, OpClass op_class, Precision precision);

/// Returns the step times of `draws` draws, under the scenario's seed. REQUIRES: the device was
/// calibrated.
std::vector<Seconds> drawn_steps(const Plan& plan, int draws);

/// Returns the middle `level` of the drawn step times, with the limits of what was measured.
/// REQUIRES: as above; draws >= kFewestDraws.
Confidence calibrated_range(const Plan& plan, int draws);

/// Returns why prices on a calibrated device reach beyond what was measured; simulates nothing.
std::vector<std::string> calibration_limits(const Plan& plan);

}  // namespace interlock
