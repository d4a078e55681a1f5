// 1F1B: a stage runs as many forwards ahead as there are stages after it, then one F, one B.
// SPDX-License-Identifier: Apache-2.0
//
// Four stages, six micro-batches, a backward twice as long as a forward (interlock schedule):
//
//   device 0  F0F1F2F3............B0--F4B1--F5B2--..B3--..B4--..B5--
//   device 1  ..F0F1F2........B0--F3B1--F4B2--F5B3--..B4--..B5--....
//   device 2  ....F0F1....B0--F2B1--F3B2--F4B3--F5B4--..B5--........
//   device 3  ......F0B0--F1B1--F2B2--F3B3--F4B4--F5B5--............
//
// Eager 1F1B runs twice as many ahead: between the forward of a micro-batch and its backward a
// stage then has other work for as long as the way to the last stage and back takes, transfers
// included. It pays with up to twice the stash. Source: Zhuang et al., arXiv 2211.05322, section 4.
#include <algorithm>

#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {
namespace {

/// Returns `ahead` forwards of a stage, then one forward and one backward in turn, or as a pair,
/// then what is left.
Sequence one_f_one_b_sequence(const ScheduleInputs& inputs, int stage, int ahead) {
  const int micro_batches = inputs.micro_batches;
  ahead = std::min(ahead, micro_batches);
  Run warm_up{.ops = {{OpKind::F, stage, 0, stage}}, .repeats = ahead};
  Run steady{.ops = {{OpKind::F, stage, ahead, stage}}, .repeats = micro_batches - ahead};
  steady.ops.front().overlaps_next = inputs.policy.passes_in_pairs;
  append_backward(steady.ops, inputs, stage, 0);
  Run cool_down{.repeats = ahead};
  append_backward(cool_down.ops, inputs, stage, micro_batches - ahead);
  Run update{.ops = {{OpKind::U, stage, micro_batches - 1, stage}}};
  return {{warm_up, steady, cool_down, update}, inputs.steps, micro_batches};
}

Schedule make_one_f_one_b(const ScheduleInputs& inputs) {
  return one_sequence_a_stage(inputs, [](const ScheduleInputs& in, int stage) {
    return one_f_one_b_sequence(in, stage,
                                in.stages - 1 - stage + (in.policy.passes_in_pairs ? 1 : 0));
  });
}

Schedule make_eager_one_f_one_b(const ScheduleInputs& inputs) {
  return one_sequence_a_stage(inputs, [](const ScheduleInputs& in, int stage) {
    return one_f_one_b_sequence(in, stage, 2 * (in.stages - 1 - stage));
  });
}

/// Between two stages a pair would stand until the next one's pair is done, and the reverse.
std::string one_stage_problem(const ScheduleShape& shape) {
  if (shape.stages == 1) return "";
  return "has no other micro-batch to run beside each on " + std::to_string(shape.stages) +
         " stages; expected 1 stage, or \"interleaved\" with several chunks";
}

}  // namespace

ScheduleEntry schedules::one_f_one_b() {
  return {.name = "1f1b",
          .flushes = true,
          .summary = "one forward, one backward in turn, with a flush",
          .source = "PipeDream-flush, arXiv 2006.09503; Megatron-LM, arXiv 2104.04473",
          .make = make_one_f_one_b,
          .pair_problem = one_stage_problem,
          .period = every_micro_batch,
          .bubble = formulas::kFlush,
          .stashed = formulas::kDevices};
}

ScheduleEntry schedules::eager_one_f_one_b() {
  return {
      .name = "eager-1f1b",
      .flushes = true,
      .summary = "1f1b with twice as many forwards ahead, so that transfers hide behind compute",
      .source = "Zhuang et al., arXiv 2211.05322",
      .make = make_eager_one_f_one_b,
      .period = every_micro_batch,
      .bubble = formulas::kFlush,
      .stashed = formulas::kTwice};
}

}  // namespace interlock
