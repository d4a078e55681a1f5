// Priced class: whose efficiency holds for a kernel, and whether that leaves the peak rates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hardware/devices/device.h"

namespace interlock {

/// Returns the class whose efficiency holds for `work`: attention that no kernel fuses is matrix
/// products, one of each head of each sample.
OpClass priced_class(const Work& work);

/// Returns whether kernels of a class are priced at the peak rates of `device`: its file gives the
/// class no efficiency, or one of 1.
bool at_peak_rates(const Device& device, OpClass op_class);

}  // namespace interlock
