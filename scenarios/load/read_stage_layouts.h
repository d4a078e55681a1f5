// Stages that pipeline ranks divide each in its own way: what a scenario says of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scenarios/contract/contract.h"
#include "scenarios/load/loader.h"

namespace interlock {

/// "stage_layouts" and how tensors get from one to the next.
void read_stage_layouts(Section& section, ParallelKeys& keys);
/// What strategy, schedule and folding have against them.
void check_stage_layouts(const ParallelKeys& keys, const Question& question,
                         const JsonNode& document, Diagnostics& diagnostics);
/// Builds the graph of each; `options` are those of the undivided model.
void build_stage_layouts(const ParallelKeys& keys, const JsonNode& model, BuildOptions options,
                         Question& question, Diagnostics& diagnostics);

}  // namespace interlock
