// Chimera: two copies of the model in opposite directions, each filling the bubbles of the other.
// SPDX-License-Identifier: Apache-2.0
//
// A step is cut into units of p micro-batches: the first half goes down through copy 0, the second
// up through copy 1. With a slot for each forward and each backward, the ops of a unit fall into
// slots of which no rank has two at once, and units follow each other every 2p slots without a gap
// (direct concatenation). A rank runs its ops in the order of their slots, however long they take.
// Source: Li and Hoefler, arXiv 2107.06925.
#include <string>

#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/unit_order.h"

namespace interlock {

Schedule make_chimera(const ScheduleInputs& inputs) {
  Schedule schedule = empty_schedule(inputs);
  const std::vector<std::vector<int>> stages = stages_of_ranks(inputs);
  const int ranks = static_cast<int>(stages.size()), slots = 2 * ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<Pass> unit;
    for (int copy = 0; copy < inputs.copies; ++copy) {
      const int stage = stages[rank][copy], depth = stage - copy * ranks;
      for (int m = 0; m < ranks / 2; ++m) {
        const int micro_batch = copy * (ranks / 2) + m;
        unit.push_back({depth + 2 * m, true, stage, micro_batch});
        unit.push_back({slots - 1 - depth + 2 * m, false, stage, micro_batch});
      }
    }
    RunWriter order;
    append_units(order, inputs, unit, {.size = ranks, .interval = slots});
    order.append_updates(inputs, stages[rank]);
    schedule.ranks[rank] = {{order.take(), inputs.steps, inputs.micro_batches}};
  }
  return schedule;
}

std::string chimera_problem(const ScheduleShape& shape) {
  if (const std::string wrong = mirrored_problem(shape); !wrong.empty()) return wrong;
  const int p = shape.ranks, m = shape.micro_batches;
  if (m % p == 0) return "";
  const int more = (m / p + 1) * p;
  return "takes a micro-batch for each rank at a time; expected a multiple of " +
         std::to_string(p) + " micro-batches, such as " +
         (m > p ? std::to_string(more - p) + " or " : "") + std::to_string(more) + ", got " +
         std::to_string(m);
}

}  // namespace interlock
