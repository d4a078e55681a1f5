// cut_model: which modules are a stage, and which rank runs it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "scenarios/load/question.h"
#include "sim/plan/partition.h"

namespace interlock {

struct CutModel {
  Partition partition;
  std::vector<int> rank_of_stage;  // (stages)
};

/// Cuts the model of `question` as its "partition" says. `balanced` minimises the busy time of the
/// busiest stage for one micro-batch, heads, recompute and every traversal included; stages that
/// nothing lays on ranks are laid in contiguous blocks, so that the busiest rank is least busy.
CutModel cut_model(const Question& question);

}  // namespace interlock
