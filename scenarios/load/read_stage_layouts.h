// Stages and layers that are divided each in its own way: what a scenario says of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scenarios/contract/contract.h"
#include "scenarios/load/loader.h"

namespace interlock {

/// Reads "stage_layouts", and how tensors get from one layout to the next.
void read_stage_layouts(Section& section, ParallelKeys& keys);
/// Reports where strategy, schedule or folding do not allow layouts by stage.
void check_stage_layouts(const ParallelKeys& keys, const Question& question,
                         const JsonNode& document, Diagnostics& diagnostics);
/// Builds the graph of each; `options` are those of the undivided model.
void build_stage_layouts(const ParallelKeys& keys, const JsonNode& model, BuildOptions options,
                         Question& question, Diagnostics& diagnostics);

/// Reads "layer_layouts". REQUIRES: all other degrees were read.
void read_layer_layouts(Section& section, ParallelKeys& keys);
/// Reports where the rest of a scenario does not allow layouts by layer.
void check_layer_layouts(const ParallelKeys& keys, const Question& question,
                         const JsonNode& document, Diagnostics& diagnostics);
/// Puts layers that are divided in ways of their own into the model of `question`.
void build_layer_layouts(const ParallelKeys& keys, const JsonNode& model,
                         const BuildOptions& options, Question& question, Diagnostics& diagnostics);

}  // namespace interlock
