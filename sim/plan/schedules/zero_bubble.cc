// Zero bubble: 1F1B whose weight gradients wait until there is nothing else to do.
// SPDX-License-Identifier: Apache-2.0
//
// Every backward has two halves. All stages below wait for the input half, none for the weight
// half: stage s keeps a number of weight halves back and works them off while others still wait for
// the last gradients. H1 holds as much memory as 1F1B; H2 runs twice as many forwards ahead and,
// where F = I = W, leaves no bubble but that of the update of all stages at one moment. The first
// stage splits too: its input half takes its time, although no stage waits for it. Source: Qi et
// al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241, section 2.
#include <algorithm>

#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

namespace {

/// Returns the order of a stage. `depth` 1 for H1, 2 for H2: forwards ahead, and weight halves held
/// back, for each stage beyond.
Sequence zero_bubble_sequence(const ScheduleInputs& inputs, int stage, int depth) {
  const int micro_batches = inputs.micro_batches;
  const int ahead = std::min(depth * (inputs.stages - 1 - stage), micro_batches);
  const int held = std::min(depth * stage, micro_batches);
  std::vector<Run> runs;
  auto single = [&](OpKind kind, int begin, int end) {
    runs.push_back({{global_op(inputs, kind, stage, begin)}, end - begin});
  };
  // The input halves of micro-batches [begin, end), each after a forward, before a weight half.
  auto turns = [&](int begin, int end, bool forward, bool weight) {
    Run run{.repeats = end - begin};
    if (forward) run.ops.push_back(global_op(inputs, OpKind::F, stage, ahead + begin));
    run.ops.push_back(global_op(inputs, OpKind::I, stage, begin));
    if (weight) run.ops.push_back(global_op(inputs, OpKind::W, stage, begin - held));
    runs.push_back(run);
  };
  const int last_forward = micro_batches - ahead;
  const bool both = held < last_forward;  // else forwards end before weight halves begin
  single(OpKind::F, 0, ahead);
  turns(0, std::min(held, last_forward), true, false);
  turns(std::min(held, last_forward), std::max(held, last_forward), both, both);
  turns(std::max(held, last_forward), micro_batches, false, true);
  single(OpKind::W, micro_batches - held, micro_batches);
  single(OpKind::U, micro_batches - 1, micro_batches);
  return {runs, inputs.steps, micro_batches};
}

Schedule make_zb_h1(const ScheduleInputs& inputs) {
  return one_sequence_a_stage(inputs, [](const ScheduleInputs& in, int stage) {
    return zero_bubble_sequence(in, stage, 1);
  });
}

Schedule make_zb_h2(const ScheduleInputs& inputs) {
  return one_sequence_a_stage(inputs, [](const ScheduleInputs& in, int stage) {
    return zero_bubble_sequence(in, stage, 2);
  });
}

}  // namespace

// Weight gradients leave p - 1 of 3m + p - 1 idle.
ScheduleEntry schedules::zb_h1() {
  return {.name = "zb-h1",
          .split_backward = true,
          .flushes = true,
          .summary = "1f1b whose weight gradients fill the bubbles, in the same memory",
          .source = "Zero Bubble, arXiv 2401.10241",
          .make = make_zb_h1,
          .period = every_micro_batch,
          .bubble = formulas::kThirdFlush,
          .stashed = formulas::kDevices};
}

ScheduleEntry schedules::zb_h2() {
  return {.name = "zb-h2",
          .split_backward = true,
          .flushes = true,
          .summary = "zb-h1 with twice the memory and, where F = I = W, no bubble",
          .source = "Zero Bubble, arXiv 2401.10241",
          .make = make_zb_h2,
          .period = every_micro_batch,
          .bubble = formulas::kNoBubble,
          .stashed = formulas::kTwice};
}

}  // namespace interlock
