// DeepSpeed scenario: a configuration of DeepSpeed, or of accelerate, as a scenario.
// SPDX-License-Identifier: Apache-2.0
//
// Neither says the model nor the devices: import's --model and --devices do. A value "auto" is one
// that the trainer fills in, and counts as not written.
// Sources: deepspeed.ai, "DeepSpeed Configuration JSON"; huggingface.co/docs/accelerate,
// "DeepSpeed" and "Fully Sharded Data Parallel".
#pragma once

#include <string>

#include "reports/imports/settings.h"
#include "reports/imports/surroundings.h"

namespace interlock {

/// Says every setting of a DeepSpeed JSON, or of an accelerate YAML under DeepSpeed's names.
Settings read_deepspeed_settings(const std::string& path);

/// Returns the scenario as JSON. Throws: Error that tells every setting which has no counterpart.
std::string deepspeed_scenario(Settings& settings, const Surroundings& around);

}  // namespace interlock
