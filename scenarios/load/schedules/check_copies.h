// Schedules of whose copies of the model one is updated: WeiPipe and HelixPipe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scenarios/load/loader.h"

namespace interlock {

/// Reports where the rest of a scenario does not fit a ring. `cluster`: null if it was refused.
void check_ring(const Question& question, const TrainingKeys& keys, const Cluster* cluster,
                const JsonNode& document, Diagnostics& diagnostics);

/// Returns what is a module of its own under the schedule at training.schedule.
PartedAttention parted_attention(const std::optional<JsonNode>& schedule);
/// Returns the modules of each stage: attention is a stage of its own, and so is what lies between.
/// Each module, where none is attention alone.
/// Example: embedding, before, attention, behind, readout of one layer: 2, 1, 2.
std::vector<int> helix_stages(const ModelGraph& graph);

/// Returns the rank of each stage of the first copy: 0, 1, 1, 2, 2, 0, 0, ... for 3 ranks.
std::vector<int> helix_ranks(int ranks, int stages);

/// Reports where the rest of a scenario does not fit HelixPipe. `graph`: null if it was refused.
void check_helix(const Question& question, const TrainingKeys& keys, const ModelGraph* graph,
                 const JsonNode& document, Diagnostics& diagnostics);

}  // namespace interlock
