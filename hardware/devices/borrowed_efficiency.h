// Borrowed efficiency: shares of the peaks for a device that states none, from the nearest one.
// SPDX-License-Identifier: Apache-2.0
//
// Nearest is, in this order: a device of the catalogue of the same generation ("H100" of
// "H100-PCIe-80GB"); one of the same architecture; one of the same vendor, else any, whose peak in
// 16 bits over its memory bandwidth is closest, in logarithms. Only devices that state efficiencies
// lend them.
//
// Example: "MI308X" has no file; written with "architecture": "AMD CDNA 3" it borrows from
// mi300x or mi325x, whichever has the closer ratio of compute to memory bandwidth.
#pragma once

#include <string>
#include <vector>

#include "hardware/devices/device.h"

namespace interlock {

/// A device that may lend, under its name in the catalogue.
struct Lender {
  std::string name;
  Device device;
};

/// Returns "A100" of "A100-SXM4-80GB", "RTX-3090" of "RTX-3090-24GB": up to the first part with a
/// digit.
std::string generation_of(const std::string& device);

/// Returns "NVIDIA" of the architecture "NVIDIA Hopper"; empty: it is not told.
std::string vendor_of(const Device& device);

/// Gives `device` the efficiencies of the nearest of `lenders`, its tile_ramp too unless `device`
/// has one (both were fitted together), and says so in `device.borrowed`. Does nothing
/// without lenders.
void borrow_efficiency(Device& device, const std::vector<Lender>& lenders);

/// Says from whom `device` borrows. REQUIRES: it does.
std::string borrowed_words(const Device& device);

}  // namespace interlock
