// Looking for GPUs: driver, devices, and which of them reach each other's memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/executors/cuda_executor.h"

namespace interlock::cuda {

/// Fills `report`; state is NoDriver, NoDevice or Ready.
void look(CudaReport& report);

}  // namespace interlock::cuda
