// 1F1B: a stage runs as many forwards ahead as there are stages after it, then one F, one B.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

namespace {

Sequence stage_sequence(const ScheduleInputs& inputs, int stage) {
  const int micro_batches = inputs.micro_batches;
  const int ahead = std::min(inputs.stages - 1 - stage, micro_batches);

  Run warm_up{.ops = {{OpKind::F, stage, 0, stage}}, .repeats = ahead};
  Run steady{.ops = {{OpKind::F, stage, ahead, stage}}, .repeats = micro_batches - ahead};
  append_backward(steady.ops, inputs, stage, 0);
  Run cool_down{.repeats = ahead};
  append_backward(cool_down.ops, inputs, stage, micro_batches - ahead);
  Run update{.ops = {{OpKind::U, stage, micro_batches - 1, stage}}};
  return {{warm_up, steady, cool_down, update}, inputs.steps, micro_batches};
}

}  // namespace

Schedule make_one_f_one_b(const ScheduleInputs& inputs) {
  return one_sequence_a_stage(inputs, stage_sequence);
}

}  // namespace interlock
