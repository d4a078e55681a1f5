// GPipe: all forwards of a step, then all backwards, then the update.
// SPDX-License-Identifier: Apache-2.0
//
// Backwards come in the order of the forwards, as in PyTorch's schedule; the paper's figure shows
// the reverse, which takes the same time and memory.
#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

namespace {

Sequence gpipe_sequence(const ScheduleInputs& inputs, int stage) {
  const int micro_batches = inputs.micro_batches;
  Run forwards{.ops = {{OpKind::F, stage, 0, stage}}, .repeats = micro_batches};
  Run backwards{.repeats = micro_batches};
  append_backward(backwards.ops, inputs, stage, 0);
  Run update{.ops = {{OpKind::U, stage, micro_batches - 1, stage}}};
  return {{forwards, backwards, update}, inputs.steps, micro_batches};
}

Schedule make_gpipe(const ScheduleInputs& inputs) {
  return one_sequence_a_stage(inputs, gpipe_sequence);
}

}  // namespace

ScheduleEntry schedules::gpipe() {
  return {.name = "gpipe",
          .infers = true,
          .flushes = true,
          .summary = "all forwards of a step, then all backwards, then a flush",
          .source = "GPipe, arXiv 1811.06965",
          .make = make_gpipe,
          .bubble = formulas::kFlush,
          .stashed = formulas::kAll};
}

}  // namespace interlock
