// NVML: what a GPU's clocks and power are now. Opened at run time; nothing needs it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "validate/executors/cuda_executor.h"

namespace interlock::cuda {

/// Returns the driver's version by NVML; empty if it is not there.
std::string nvml_version();

/// Fills clocks and power of `device` (found by its bus), as far as NVML knows them.
void read_clocks(CudaDevice& device);

}  // namespace interlock::cuda
