// KernelTime: what a kernel's duration is made of, and what it was found by.
// SPDX-License-Identifier: Apache-2.0
//
// Example: launch 5 us, compute 80 us, memory 100 us: the kernel takes 5 + 100 = 105 us.
#pragma once

#include <algorithm>

#include "base/units.h"

namespace interlock {

/// How a duration was found: measured at this very shape; by the model of the kernel that the
/// nearest measured shape ran; by the smooth roofline of the class of kernels; by peak rates and
/// efficiencies, or as a given time.
enum class PricedBy { Table, Kernel, Roofline, Datasheet };
inline constexpr int kPricedBy = 4;

/// The parts of a kernel's duration. A measured duration counts as compute.
struct KernelTime {
  Seconds launch;           // of all its launches
  Seconds compute, memory;  // under either roof; the longer one counts
  PricedBy priced_by = PricedBy::Datasheet;
  Seconds whole() const { return launch + std::max(compute, memory); }
};

}  // namespace interlock
