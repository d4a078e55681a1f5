// The driver's functions for partitions, on the emulated GPUs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace emulated {

/// Null: there is none of that name.
void* driver_function(const char* name);

}  // namespace emulated
