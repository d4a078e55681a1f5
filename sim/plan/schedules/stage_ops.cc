// The backward ops of a stage, and stages laid on ranks.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/schedules/stage_ops.h"

#include <algorithm>

namespace interlock {

void append_backward(std::vector<Op>& ops, const ScheduleInputs& inputs, int stage,
                     int micro_batch) {
  for (const Traversal& traversal : inputs.roles[stage].traversals) {
    const bool split = inputs.policy.split_backward && traversal.to_previous;
    const OpKind first = traversal.weights && !split ? OpKind::B : OpKind::I;
    ops.push_back({first, stage, micro_batch, traversal.loss});
    if (traversal.weights && split) {
      ops.push_back({OpKind::W, stage, micro_batch, traversal.loss});
    }
  }
}

Schedule one_sequence_a_stage(const ScheduleInputs& inputs,
                              Sequence (*of_stage)(const ScheduleInputs&, int stage)) {
  Schedule schedule{.stages = inputs.stages,
                    .micro_batches = inputs.micro_batches,
                    .steps = inputs.steps,
                    .pattern = inputs.micro_batches,
                    .rank_of_stage = inputs.rank_of_stage};
  const auto& ranks = inputs.rank_of_stage;
  schedule.ranks.resize(*std::max_element(ranks.begin(), ranks.end()) + 1);
  for (int stage = 0; stage < inputs.stages; ++stage) {
    schedule.ranks[ranks[stage]].push_back(of_stage(inputs, stage));
  }
  return schedule;
}

}  // namespace interlock
