// Eager 1F1B: 1F1B with twice as many forwards ahead, so that transfers hide behind compute.
// SPDX-License-Identifier: Apache-2.0
//
// Between the forward of a micro-batch and its backward a stage then has other work for as long as
// the way to the last stage and back takes, transfers included. It pays with up to twice the stash.
// Source: Zhuang et al., arXiv 2211.05322, section 4.
#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

Schedule make_eager_one_f_one_b(const ScheduleInputs& inputs) {
  return one_sequence_a_stage(inputs, [](const ScheduleInputs& in, int stage) {
    return one_f_one_b_sequence(in, stage, 2 * (in.stages - 1 - stage));
  });
}

}  // namespace interlock
