// DualPipe and DualPipeV: two streams of micro-batches meet, forwards of one beside backwards.
// SPDX-License-Identifier: Apache-2.0
//
// DualPipe keeps two copies of the model, the second in reverse, and sends half of the
// micro-batches through each. DualPipeV folds one copy into a V instead: its directions are the way
// down and the way up. Either way a rank has a stage for each direction, and is counted from the
// end where direction 0 begins to the middle where both meet; beyond it the directions change
// roles. Source: the authors' description of the phases with the DeepSeek-V3 report, arXiv
// 2412.19437.
#include <array>
#include <deque>
#include <string>

#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

namespace {

/// The two directions of one rank; ops are numbered as they are asked for.
class TwoWays {
 public:
  /// Takes `stages` of direction 0 and of direction 1; `firsts`: their first micro-batches.
  TwoWays(const ScheduleInputs& inputs, std::array<int, 2> stages, std::array<int, 2> firsts)
      : inputs_(inputs), stages_(stages), forwards_(firsts), backwards_(firsts) {}

  Op f(int way) { return op(OpKind::F, way, forwards_[way]++); }
  /// Returns a forward that runs as one with the backward after it.
  Op f_with(int way) {
    Op forward = f(way);
    forward.overlaps_next = true;
    return forward;
  }
  Op b(int way) { return op(OpKind::B, way, backwards_[way]++); }
  /// Returns the input half of a backward, whose weight half is then due.
  Op i(int way) {
    due_.push_back(op(OpKind::W, way, backwards_[way]));
    return op(OpKind::I, way, backwards_[way]++);
  }
  /// Returns the weight half that has been due longest.
  Op w() {
    const Op oldest = due_.front();
    due_.pop_front();
    return oldest;
  }

 private:
  Op op(OpKind kind, int way, int micro_batch) const {
    return global_op(inputs_, kind, stages_[way], micro_batch);
  }

  const ScheduleInputs& inputs_;
  std::array<int, 2> stages_, forwards_, backwards_;
  std::deque<Op> due_;
};

/// Appends the phases of a rank that has `to_middle` others between itself and the middle and is
/// the `from_end`-th from the end, for `micro_batches` in each direction. Ops in one pair of braces
/// are taken from left to right.
void append_phases(RunWriter& order, TwoWays way, int to_middle, int from_end, int micro_batches) {
  const int steady = micro_batches - 2 * to_middle - from_end;
  for (int n = 0; n < 2 * to_middle; ++n) order.append({way.f(0)});
  for (int n = 0; n < from_end; ++n) order.append({way.f(0), way.f(1)});
  for (int n = 0; n < to_middle; ++n) order.append({way.i(1), way.w(), way.f(1)});
  for (int n = 0; n < steady; ++n) {
    const bool alone = n == 0 && to_middle == 0;  // together they would wait for each other's input
    order.append({alone ? way.f(0) : way.f_with(0), way.b(1), way.f_with(1), way.b(0)});
  }
  for (int n = 0; n < to_middle; ++n) order.append({way.b(1), way.f_with(1), way.b(0)});
  for (int n = 0; n < from_end; ++n) {  // weight halves begin to be left for the bubbles to come
    order.append(
        {2 * n < from_end ? way.b(1) : way.i(1), 2 * n + 1 < from_end ? way.b(0) : way.i(0)});
  }
  for (int n = 0; n < to_middle; ++n) order.append({way.w(), way.i(0)});
  for (int n = 0; n < from_end; ++n) order.append({way.w()});
}

Schedule make_dual_pipe(const ScheduleInputs& inputs) {
  Schedule schedule = empty_schedule(inputs);
  const int of_copy = inputs.stages / inputs.copies, each = inputs.micro_batches / inputs.copies;
  const std::vector<std::vector<int>> stages = stages_of_ranks(inputs);
  for (std::size_t rank = 0; rank < stages.size(); ++rank) {
    std::array<int, 2> ways = {stages[rank][0], stages[rank][1]};
    if (ways[1] % of_copy < ways[0] % of_copy) std::swap(ways[0], ways[1]);
    const std::array<int, 2> firsts = {ways[0] / of_copy * each, ways[1] / of_copy * each};
    const int position = ways[0] % of_copy;
    RunWriter order;
    append_phases(order, TwoWays(inputs, ways, firsts), of_copy / 2 - 1 - position, position + 1,
                  each);
    order.append_updates(inputs, ways);
    schedule.ranks[rank] = {{order.take(), inputs.steps, inputs.micro_batches}};
  }
  return schedule;
}

std::string dual_pipe_problem(const ScheduleShape& shape) {
  if (std::string wrong = mirrored_problem(shape); !wrong.empty()) return wrong;
  const int least = 2 * shape.ranks;
  if (shape.micro_batches >= least && shape.micro_batches % 2 == 0) return "";
  return "fills both directions of its " + std::to_string(shape.ranks) +
         " ranks; expected an even number of micro-batches, at least " + std::to_string(least) +
         ", got " + std::to_string(shape.micro_batches);
}

std::string dual_pipe_v_problem(const ScheduleShape& shape) {
  if (std::string wrong = one_v_problem(shape); !wrong.empty()) return wrong;
  const int least = 2 * shape.ranks;
  if (shape.micro_batches >= least) return "";
  return "fills both ways of its " + std::to_string(shape.ranks) + " ranks; expected at least " +
         std::to_string(least) + " micro-batches, got " + std::to_string(shape.micro_batches);
}

}  // namespace

// (p/2 - 1)(F&B + B - 3W) (arXiv 2412.19437) = p - 2 are idle where overlap gains nothing. No
// period: copies take halves, so numbers would move.
ScheduleEntry schedules::dual_pipe() {
  return {.name = "dualpipe",
          .flushes = true,
          .overlaps = true,
          .layout = StageLayout::Mirrored,
          .summary =
              "two copies in opposite directions; forwards of one overlap backwards of the other",
          .source = "DeepSeek-V3, arXiv 2412.19437",
          .make = make_dual_pipe,
          .problem = dual_pipe_problem,
          .bubble = {"(p - 2) / (3m + p - 2)",
                     [](const PipelineShape& s) {
                       return formulas::share(s.devices - 2, 3.0 * s.micro_batches);
                     }},
          .stashed = {"p + 1", [](const PipelineShape& s) { return s.devices + 1.0; }}};
}

// On stages half as long, p - 1 are idle.
ScheduleEntry schedules::dual_pipe_v() {
  return {.name = "dualpipe-v",
          .flushes = true,
          .overlaps = true,
          .layout = StageLayout::V,
          .chunks = 2,
          .summary = "dualpipe cut in half: one copy, laid as a V, whose two ways overlap",
          .source = "DeepSeek-V3, arXiv 2412.19437; DualPipe's authors on DualPipeV",
          .make = make_dual_pipe,
          .problem = dual_pipe_v_problem,
          .period = every_micro_batch,
          .bubble = formulas::kThirdFlush,
          .stashed = {"p + 1/2", [](const PipelineShape& s) { return s.devices + 0.5; }}};
}

}  // namespace interlock
