// Refuses what a schedule whose weights go round a ring of ranks cannot be combined with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scenarios/load/loader.h"

namespace interlock {

/// Reports where the rest of a scenario does not fit a ring. `cluster`: null if it was refused.
void check_ring(const Question& question, const TrainingKeys& keys, const Cluster* cluster,
                const JsonNode& document, Diagnostics& diagnostics);

}  // namespace interlock
