// What all schedule families share: the backward ops of a stage, and stages laid on ranks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/catalogue.h"

namespace interlock {

/// Appends the backward of `micro_batch` on `stage`: every traversal of its role, nearest loss
/// first. A traversal without weight gradients is one I; the last one is B, or, where the backward
/// is split and the stage below waits for the input gradient, I and W.
void append_backward(std::vector<Op>& ops, const ScheduleInputs& inputs, int stage,
                     int micro_batch);

/// A schedule whose ranks hold `of_stage(inputs, stage)` for each of their stages.
Schedule one_sequence_a_stage(const ScheduleInputs& inputs,
                              Sequence (*of_stage)(const ScheduleInputs&, int stage));

}  // namespace interlock
