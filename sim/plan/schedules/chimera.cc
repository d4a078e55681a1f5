// Chimera: two copies of the model in opposite directions, each filling the bubbles of the other.
// SPDX-License-Identifier: Apache-2.0
//
// A step is cut into units of p micro-batches: the first half goes down through copy 0, the second
// up through copy 1. With a slot for each forward and each backward, the ops of a unit fall into
// slots of which no rank has two at once, and units follow each other every 2p slots without a gap
// (direct concatenation). A rank runs its ops in the order of their slots, however long they take.
// Source: Li and Hoefler, arXiv 2107.06925.
#include <map>
#include <string>

#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

namespace {

/// One forward or backward.
struct Pass {
  bool forward = true;
  int stage = 0, micro_batch = 0;
};

/// What a rank does in the 2p slots that begin with unit `number`: this unit and what is left of
/// the one before, where there are `units` in all.
std::vector<Op> ops_of_window(const ScheduleInputs& inputs, const std::vector<int>& stages,
                              int number, int units) {
  const int ranks = inputs.stages / inputs.copies, window = 2 * ranks;
  std::map<int, Pass> passes;  // by slot
  const auto add = [&](int slot, Pass pass) {
    const int unit = number - slot / window;
    pass.micro_batch += unit * ranks;
    if (0 <= unit && unit < units) passes[slot % window] = pass;
  };
  for (int copy = 0; copy < inputs.copies; ++copy) {
    const int depth = stages[copy] - copy * ranks;
    for (int m = 0; m < ranks / 2; ++m) {
      const int micro_batch = copy * (ranks / 2) + m;
      add(depth + 2 * m, {true, stages[copy], micro_batch});
      add(window - 1 - depth + 2 * m, {false, stages[copy], micro_batch});
    }
  }
  std::vector<Op> ops;
  for (const auto& [slot, pass] : passes) {
    if (pass.forward) {
      ops.push_back(global_op(inputs, OpKind::F, pass.stage, pass.micro_batch));
    } else {
      append_backward(ops, inputs, pass.stage, pass.micro_batch);
    }
  }
  return ops;
}

}  // namespace

Schedule make_chimera(const ScheduleInputs& inputs) {
  Schedule schedule = empty_schedule(inputs);
  const std::vector<std::vector<int>> stages = stages_of_ranks(inputs);
  const int ranks = static_cast<int>(stages.size());
  const int units = inputs.micro_batches / ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    RunWriter order;
    order.append(ops_of_window(inputs, stages[rank], 0, units));
    order.append_loop(ops_of_window(inputs, stages[rank], 1, units), units - 1, ranks);
    order.append(ops_of_window(inputs, stages[rank], units, units));
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
