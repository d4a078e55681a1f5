// StageRecompute: recomputation that counts the layers of each stage.
// SPDX-License-Identifier: Apache-2.0
//
// Example: a stage of five layers, each of which keeps 1 MiB of input, or 10 MiB in all, and works
// with 2 MiB more.
//   nothing more      keeps 5 x 1, works with 2 + 9
//   layers 2          keeps 2 x 1 + 3 x 10, works with 2 + 9
//   group 3           keeps 2 x 1, works with 2 + 3 x 9 + 2 x 1: three layers come back at once
// A group ends where layers have other degrees. The model's last module ends with the losses; the
// layers of later tokens, which are part of it, are computed again by themselves. Source:
// NVIDIA/Megatron-LM, megatron/core/transformer/transformer_config.py, recompute_method: "block"
// counts `layers`, "uniform" makes groups; commit d98e8a64ddf34856e74b24714e3bedb2f5a39553.
#pragma once

#include <optional>
#include <vector>

#include "sim/plan/partition.h"
#include "sim/plan/stage_cost.h"

namespace interlock {

/// Which of the layers that can be computed again are, in a stage; by default all, each by itself.
struct StageRecompute {
  std::optional<int> layers;  // the first ones, of this number; the others keep everything
  int group = 1;              // in a row that are computed again together, of the first one's input
  bool any() const { return layers || group > 1; }
};

/// Returns the prices of modules as the stages of `partition` run them. `modules` are those that
/// compute every layer again.
std::vector<StageCost> recomputed_in_stages(std::vector<StageCost> modules,
                                            const Partition& partition, const StageRecompute& rule);

/// Returns the busy time of modules as a stage: `all`, less what the stage does not compute again.
/// REQUIRES: every stage goes back once.
StageTime busy_with(const StageRecompute& rule, const std::vector<StageCost>& modules,
                    StageTime all);

}  // namespace interlock
