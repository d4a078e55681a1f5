// Gradients that cross boundaries now and then, and casts of messages, held to a scenario.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scenarios/load/loader.h"

namespace interlock {

/// Reports where "gradient_every", "activation_format" and "gradient_format" of the strategy do not
/// fit the rest of a scenario.
void check_boundaries(const Question& question, const TrainingKeys& keys, const JsonNode& document,
                      Diagnostics& diagnostics);

}  // namespace interlock
