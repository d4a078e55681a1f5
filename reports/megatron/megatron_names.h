// Megatron names: which arguments of Megatron-LM change neither time nor memory, and which do.
// SPDX-License-Identifier: Apache-2.0
//
// Only arguments that no key of a scenario takes are listed.
// Source: NVIDIA/Megatron-LM @ d98e8a6, megatron/training/arguments.py.
#pragma once

#include "reports/imports/settings.h"

namespace interlock {

/// Returns how the argument `name`, without "--", stands to the time and memory of a step.
NameBearing megatron_bearing(const std::string& name);

}  // namespace interlock
