// Optimisers as scenarios write them.
// SPDX-License-Identifier: Apache-2.0
//
// Example: {"kind": "basis-rotation", "sides": "shorter"}; "muon" alone.
#pragma once

#include "scenarios/load/question.h"

namespace interlock {

/// Returns the optimiser that training.optimizer names or describes.
OptimizerRule read_optimizer(const JsonNode& node, Diagnostics& diagnostics);
/// Reports one that cannot work on weights as they are divided, or with the schedule.
void check_optimizer(const Question& question, const JsonNode& document, Diagnostics& diagnostics);

}  // namespace interlock
