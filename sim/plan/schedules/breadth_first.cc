// Breadth-first: every chunk runs all forwards of a step before the next chunk, backwards likewise.
// SPDX-License-Identifier: Apache-2.0
//
// Stages lie in loops, as when interleaved. All micro-batches are held at once; in return each
// stage is begun and left once a step, so that what belongs to it (gradients of data-parallel
// copies, sharded weights) travels once and early. Source: Lamy-Poirier, Breadth-First Pipeline
// Parallelism, arXiv 2211.05953.
#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {
namespace {

Schedule make_breadth_first(const ScheduleInputs& inputs) {
  Schedule schedule = empty_schedule(inputs);
  const auto stages = stages_of_ranks(inputs);
  for (std::size_t rank = 0; rank < stages.size(); ++rank) {
    RunWriter order;
    for (const int stage : stages[rank]) {
      order.append_loop({global_op(inputs, OpKind::F, stage, 0)}, inputs.micro_batches, 1);
    }
    for (auto stage = stages[rank].rbegin(); stage != stages[rank].rend(); ++stage) {
      std::vector<Op> backward;
      append_backward(backward, inputs, *stage, 0);
      order.append_loop(backward, inputs.micro_batches, 1);
    }
    order.append_updates(inputs, stages[rank]);
    schedule.ranks[rank] = {{order.take(), inputs.steps, inputs.micro_batches}};
  }
  return schedule;
}

}  // namespace

ScheduleEntry schedules::breadth_first() {
  return {.name = "breadth-first",
          .flushes = true,
          .layout = StageLayout::Loop,
          .chunks = 2,
          .summary = "stages laid in loops, each of which runs all of a step before the next",
          .source = "Lamy-Poirier, arXiv 2211.05953",
          .make = make_breadth_first,
          .bubble = formulas::kHalfFlush,
          .stashed = formulas::kAll};
}

}  // namespace interlock
