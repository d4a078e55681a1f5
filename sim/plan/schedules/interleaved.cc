// Interleaved 1F1B, with a fused backward or without bubbles: 1F1B over stages laid in loops.
// SPDX-License-Identifier: Apache-2.0
//
// With p ranks and v stages (chunks) a rank, rank r counts its forwards k = 0, 1, ... so that p
// micro-batches go through a chunk before the next chunk takes them: forward k is of chunk
// k / p % v and micro-batch k / (p v) * p + k % p. Backwards are counted likewise, last chunk
// first. After the warm-up one forward and one backward take turns. Fused: 2 (p - r - 1) + (v - 1)
// p forwards of warm-up, as Megatron-LM does it, so that a backward is there when its turn comes;
// with one chunk p - r - 1 as in plain 1F1B, which Megatron-LM then runs instead. Zero bubble:
// p - r - 1 + (v - 1) p, and weight halves r behind their input halves.
// Sources: Narayanan et al., arXiv 2104.04473, section 2.2; Qi et al., arXiv 2401.10241, applied to
// interleaving in PyTorch's ScheduleInterleavedZeroBubble.
#include <algorithm>

#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

namespace {

/// Op `k` of its kind on a rank. Shapes: stages (chunks), of the rank.
Op counted_op(const ScheduleInputs& inputs, OpKind kind, const std::vector<int>& stages, int k) {
  const int chunks = static_cast<int>(stages.size());
  const int ranks = inputs.stages / chunks;
  const int chunk = k / ranks % chunks;
  const int stage = stages[kind == OpKind::F ? chunk : chunks - 1 - chunk];
  return global_op(inputs, kind, stage, k / (ranks * chunks) * ranks + k % ranks);
}

struct Depths {
  int ahead = 0;  // forwards before the first backward
  int held = 0;   // weight halves behind input halves
};

Sequence rank_sequence(const ScheduleInputs& inputs, const std::vector<int>& stages,
                       const Depths& depths) {
  const int count = inputs.micro_batches * static_cast<int>(stages.size());  // of a kind
  const int ahead = std::min(depths.ahead, count);
  RunWriter order;
  for (int k = 0; k < ahead; ++k) order.append({counted_op(inputs, OpKind::F, stages, k)});
  std::vector<Op> turn;
  for (int k = 0; k < count; ++k) {
    turn.clear();
    if (ahead + k < count) turn.push_back(counted_op(inputs, OpKind::F, stages, ahead + k));
    if (!inputs.policy.split_backward) {
      turn.push_back(counted_op(inputs, OpKind::B, stages, k));
    } else {
      turn.push_back(counted_op(inputs, OpKind::I, stages, k));
      if (k >= depths.held) {
        turn.push_back(counted_op(inputs, OpKind::W, stages, k - depths.held));
      }
    }
    order.append(turn);
  }
  if (inputs.policy.split_backward) {
    for (int k = std::max(0, count - depths.held); k < count; ++k) {
      order.append({counted_op(inputs, OpKind::W, stages, k)});
    }
  }
  order.append_updates(inputs, stages);
  return {order.take(), inputs.steps, inputs.micro_batches};
}

Schedule make_rounds(const ScheduleInputs& inputs,
                     Depths (*depths)(int ranks, int rank, int chunks)) {
  Schedule schedule = empty_schedule(inputs);
  const auto stages = stages_of_ranks(inputs);
  const int ranks = static_cast<int>(stages.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const int chunks = static_cast<int>(stages[rank].size());
    schedule.ranks[rank] = {rank_sequence(inputs, stages[rank], depths(ranks, rank, chunks))};
  }
  return schedule;
}

}  // namespace

Schedule make_interleaved(const ScheduleInputs& inputs) {
  return make_rounds(inputs, [](int ranks, int rank, int chunks) -> Depths {
    const int after = ranks - 1 - rank;
    return {chunks == 1 ? after : 2 * after + (chunks - 1) * ranks, 0};
  });
}

Schedule make_interleaved_zero_bubble(const ScheduleInputs& inputs) {
  return make_rounds(inputs, [](int ranks, int rank, int chunks) -> Depths {
    return {ranks - 1 - rank + (chunks - 1) * ranks, rank};
  });
}

std::string whole_rounds_problem(const ScheduleShape& shape) {
  const int over = shape.micro_batches % shape.ranks, below = shape.micro_batches - over;
  if (over == 0 || shape.stages == shape.ranks) return "";
  const std::string some = below > 0 ? std::to_string(below) + " or " : "";
  return "takes micro-batches through its chunks in rounds of one for each rank; expected a "
         "multiple of " +
         std::to_string(shape.ranks) + " such as " + some + std::to_string(below + shape.ranks) +
         ", got " + std::to_string(shape.micro_batches);
}

}  // namespace interlock
