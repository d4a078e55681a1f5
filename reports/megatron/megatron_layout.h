// Megatron layout: how Megatron-LM writes which layers lie in which stage of a pipeline.
// SPDX-License-Identifier: Apache-2.0
//
// Letters are E, the embedding; t, a transformer layer; m, a module of multi-token prediction; and
// L, the readout and its loss. Stages are parted by |; "x*3" and "(xy|)*3" repeat; commas are for
// the eye. Example: "Et*2|(tt|)*2mL" has the stages Ett, tt, tt and mL.
// Source: NVIDIA/Megatron-LM @ d98e8a6,
// megatron/core/transformer/pipeline_parallel_layer_layout.py.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/imports/settings.h"

namespace interlock {

/// Holds what lies in a stage, in this order.
struct StageContent {
  bool embedding = false;
  int layers = 0, predictors = 0;  // predictors: modules of multi-token prediction
  bool readout = false;
  /// Modules of our models; predictors are none.
  int modules() const { return layers + (embedding ? 1 : 0) + (readout ? 1 : 0); }
};

/// Returns nothing if `text` is no layout, or has more than 100000 letters.
std::optional<std::vector<StageContent>> read_layout(const std::string& text);
/// Returns a text that read_layout() makes `stages` of.
std::string layout_text(const std::vector<StageContent>& stages);

/// Returns whether each rank has the two stages of a V, as zero bubble's fork of Megatron-LM says.
/// Source: sail-sg/zero-bubble-pipeline-parallelism, megatron/training/arguments.py.
bool is_v(Settings& a);
/// Returns the schedule of a V by its memory; refuses an unknown one.
std::string v_schedule(Settings& a);

/// Sets how attention sees the whole sequence, of which each of `context` devices has a part.
void add_context_layout(Settings& a, int context, nlohmann::ordered_json& parallel);

}  // namespace interlock
