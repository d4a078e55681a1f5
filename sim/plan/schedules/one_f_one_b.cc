// 1F1B: a stage runs as many forwards ahead as there are stages after it, then one F, one B.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

Schedule make_one_f_one_b(const ScheduleInputs& inputs) {
  return one_sequence_a_stage(inputs, [](const ScheduleInputs& in, int stage) {
    return one_f_one_b_sequence(in, stage, in.stages - 1 - stage);
  });
}

}  // namespace interlock
