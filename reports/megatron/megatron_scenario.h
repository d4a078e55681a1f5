// Megatron scenario: the arguments of a training with Megatron-LM as a scenario.
// SPDX-License-Identifier: Apache-2.0
//
// Arguments that are left out have their defaults (megatron/training/arguments.py of
// NVIDIA/Megatron-LM @ d98e8a6): fp32, Adam, gradients that are added up after the backward.
#pragma once

#include <string>

#include "reports/imports/settings.h"
#include "reports/imports/surroundings.h"

namespace interlock {

/// Returns the scenario as JSON. Throws: Error that tells every argument which has no counterpart.
std::string megatron_scenario(Settings& arguments, const Surroundings& around);

}  // namespace interlock
