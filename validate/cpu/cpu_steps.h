// CpuSteps: runs the steps of a StagePlan on the CPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "validate/stage/stage_device.h"

namespace interlock {

/// Runs `steps` on blocks of numbers of type T. `targets`: of the rows of a loss. Returns the loss,
/// if one of the steps makes it.
template <class T>
double run_steps(const std::vector<Step>& steps, const StageTensors& tensors,
                 const std::int32_t* targets, StepPart part = StepPart::All);

}  // namespace interlock
