// Looking for GPUs: driver, devices, and which of them reach each other's memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/executors/cuda_executor.h"

namespace interlock::cuda {

/// Fills `report`; state is NoDriver, NoDevice or Ready.
void look(CudaReport& report);

/// Returns the address of `gpu` on its bus, by which NVML finds it.
std::string bus_of(int gpu);

/// Returns "13.0" of 13000.
std::string version_text(int version);

}  // namespace interlock::cuda
