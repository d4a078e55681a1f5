// Chimera: two copies of the model in opposite directions, each filling the bubbles of the other.
// SPDX-License-Identifier: Apache-2.0
//
// A step is cut into units of p micro-batches: the first half goes down through copy 0, the second
// up through copy 1. With a slot for each forward and each backward, the ops of a unit fall into
// slots of which no rank has two at once, and units follow each other every 2p slots without a gap
// (direct concatenation). A rank runs its ops in the order of their slots, however long they take:
// of every two slots the first has forwards of copy 0 and backwards of copy 1, p/2 in turn, and the
// second the others.
// Source: Li and Hoefler, arXiv 2107.06925.
#include <algorithm>
#include <string>

#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {
namespace {

Schedule make_chimera(const ScheduleInputs& inputs) {
  Schedule schedule = empty_schedule(inputs);
  const std::vector<std::vector<int>> stages = stages_of_ranks(inputs);
  const int ranks = static_cast<int>(stages.size()), half = ranks / 2;
  for (int rank = 0; rank < ranks; ++rank) {
    // Forwards of copy 0 begin in slot `rank`, those of copy 1 in slot p - 1 - rank.
    const int lags[] = {std::max(rank + 1 - half, 0), std::max(half - 1 - rank, 0)};
    RunWriter order;
    order.append_turns(inputs.micro_batches + lags[0] + lags[1], ranks, [&](auto& body, int turn) {
      for (const int first : {0, 1}) {  // the copy whose forwards are in this slot
        const int k = turn - lags[first];
        if (k < 0 || k >= inputs.micro_batches) continue;
        const bool forward = k / half % 2 == 0;
        const int copy = forward ? first : 1 - first, stage = stages[rank][copy];
        const int micro_batch = k / ranks * ranks + copy * half + k % half;
        if (forward) {
          body.push_back(global_op(inputs, OpKind::F, stage, micro_batch));
        } else {
          append_backward(body, inputs, stage, micro_batch);
        }
      }
    });
    order.append_updates(inputs, stages[rank]);
    schedule.ranks[rank] = {{order.take(), inputs.steps, inputs.micro_batches}};
  }
  return schedule;
}

std::string chimera_problem(const ScheduleShape& shape) {
  if (std::string wrong = mirrored_problem(shape); !wrong.empty()) return wrong;
  return whole_units_problem(shape);
}

}  // namespace

// Its (p - 2)/(2m + p - 2) is for F = B: no formula of its bubble here.
ScheduleEntry schedules::chimera() {
  return {.name = "chimera",
          .flushes = true,
          .layout = StageLayout::Mirrored,
          .summary = "two copies in opposite directions, each 1F1B in the bubbles of the other",
          .source = "Li and Hoefler, arXiv 2107.06925",
          .make = make_chimera,
          .problem = chimera_problem,
          .period = every_rank,
          .stashed = formulas::kDevices};
}

}  // namespace interlock
