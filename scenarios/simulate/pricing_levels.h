// Pricing levels: how much of a calibrated device's prices was measured, and how much fitted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "scenarios/load/question.h"

namespace interlock {

/// The kernels of one class: their time, and the share of it that each level priced.
/// Example: {Gemm, 40 ms, {0.7, 0.2, 0.1, 0}}: 28 ms of products were measured themselves, 8 ms are
/// priced by the kernel of the nearest measured shape, 4 ms by the roofline of all products.
struct PricingLevels {
  OpClass op_class = OpClass::Gemm;
  Seconds time;
  std::array<double, kPricedBy> shares{};  // by PricedBy
};

/// Adds up one micro-batch that goes through all of the model and back, and one update, heads left
/// out; by class. Empty where the device was not calibrated, or all is measured by a profile.
std::vector<PricingLevels> pricing_levels(const Question& question);

}  // namespace interlock
