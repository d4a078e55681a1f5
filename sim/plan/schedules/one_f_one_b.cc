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

/// Makes the order of a rank of 1F1B that also runs its part of the vocabulary. So that reductions
/// have time, as many further forwards as there are barriers come ahead of the first backward.
/// Passes of the readout come in turn with backwards: pass k runs T of micro-batch k - 1, S of k, E
/// of one whose forward is to come, G of one that has gone back. All ranks run them in one order,
/// and each runs pass k as early as the last stage's output can be there: before or behind a
/// forward. Where that is follows from backwards that take twice as long as forwards, and from
/// passes that take no longer. Source: the schedule of sail-sg/VocabularyParallelism.
class VocabularyOrder {
 public:
  VocabularyOrder(const ScheduleInputs& inputs, int stage)
      : inputs_(inputs),
        stage_(stage),
        more_(inputs.policy.vocabulary == VocabularySplit::TwoBarriers ? 1 : 0),
        above_(inputs.stages - 1 - stage) {}

  Sequence make() {
    const int micro_batches = inputs_.micro_batches, stages = inputs_.stages;
    const bool forward_first = runs_forward_first(above_);
    const int ahead = above_ + 2 + more_;  // forwards before the first backward
    for (int b = 0; b <= stage_; ++b) append(OpKind::E, b);
    for (int b = 0; b <= above_; ++b) {
      add(OpKind::E, b + stage_ + 1);
      append(OpKind::F, b);
    }
    pass(0);
    for (int b = 0; b < more_; ++b) {
      add(OpKind::E, stages + 1 + b);
      append(OpKind::F, above_ + 1 + b);
      pass(b + 1);
    }
    append(OpKind::F, above_ + 1 + more_);
    const int passes = passes_before(above_) + more_ + 1;  // before the first backward
    for (int k = more_ + 1; k < passes; ++k) pass(k);
    for (int b = 0; b < micro_batches; ++b) {
      append_backward(body_, inputs_, stage_, b);
      if (forward_first) add(OpKind::F, b + ahead);
      add_pass(b + passes);
      if (!forward_first) add(OpKind::F, b + ahead);
      end_turn();
    }
    for (int b = turned_back_; b < micro_batches; ++b) append(OpKind::G, b);
    if (more_ == 0) append(OpKind::T, micro_batches - 1);
    append(OpKind::U, micro_batches - 1);
    return {writer_.take(), inputs_.steps, micro_batches};
  }

 private:
  /// Returns whether a rank with `above` stages above it runs passes behind its forwards.
  static bool runs_forward_first(int above) { return above > 0 && above % 3 == 0; }
  /// Returns the passes of such a rank before its first backward, but for the first ones.
  static int passes_before(int above) {
    return 2 * (above + 1) / 3 + (runs_forward_first(above) ? 1 : 0);
  }

  void add(OpKind kind, int micro_batch) {
    if (micro_batch < 0 || micro_batch >= inputs_.micro_batches) return;
    body_.push_back({kind, stage_, micro_batch, stage_});
    if (kind == OpKind::G) turned_back_ = micro_batch + 1;
  }
  void end_turn() {
    if (!body_.empty()) writer_.append(body_);
    body_.clear();
  }
  /// Adds an op, and ends the turn.
  void append(OpKind kind, int micro_batch) {
    add(kind, micro_batch);
    end_turn();
  }
  /// Adds pass `k`. Under OneBarrier, the last T comes at the end of the step.
  void add_pass(int k) {
    const int first = passes_before(inputs_.stages - 1);  // those of the first stage
    if (more_ == 1 || k < inputs_.micro_batches) add(OpKind::T, k - 1);
    add(OpKind::S, k);
    if (k >= first + more_) add(OpKind::E, inputs_.stages + 1 + k - first);
    add(OpKind::G, k - first - 2 - more_);
  }
  void pass(int k) {
    add_pass(k);
    end_turn();
  }

  const ScheduleInputs& inputs_;
  int stage_, more_, above_;  // barriers but one; stages above this one
  int turned_back_ = 0;       // micro-batches whose G is in the order
  std::vector<Op> body_;
  RunWriter writer_;
};

Schedule make_one_f_one_b(const ScheduleInputs& inputs) {
  if (inputs.policy.vocabulary != VocabularySplit::Whole) {
    return one_sequence_a_stage(inputs, [](const ScheduleInputs& in, int stage) {
      return VocabularyOrder(in, stage).make();
    });
  }
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
