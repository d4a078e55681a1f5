// DualPipe and DualPipeV: two streams of micro-batches meet, forwards of one overlap backwards of
// the other.
// SPDX-License-Identifier: Apache-2.0
//
// DualPipe keeps two copies of the model, the second in reverse, and sends half of the
// micro-batches through each. DualPipeV folds one model into a V instead; its two directions are
// the way down and the way up again. Either way a rank has one stage for each direction, and ranks
// are counted from the end where direction 0 begins to the middle where the directions meet; on the
// other half of DualPipe's ranks the directions change roles. The phases are those of the authors'
// description: DeepSeek-V3 Technical Report, arXiv 2412.19437, and its note on cutting DualPipe in
// half.
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
  /// `stages`: of direction 0 and of direction 1; `firsts`: their first micro-batches.
  TwoWays(const ScheduleInputs& inputs, std::array<int, 2> stages, std::array<int, 2> firsts)
      : inputs_(inputs), stages_(stages), forwards_(firsts), backwards_(firsts) {}

  Op F(int way) { return op(OpKind::F, way, forwards_[way]++); }
  /// A forward that runs as one with the backward after it.
  Op F_with(int way) {
    Op forward = F(way);
    forward.overlaps_next = true;
    return forward;
  }
  Op B(int way) { return op(OpKind::B, way, backwards_[way]++); }
  /// The input half of a backward, whose weight half is then due.
  Op I(int way) {
    due_.push_back(op(OpKind::W, way, backwards_[way]));
    return op(OpKind::I, way, backwards_[way]++);
  }
  /// The weight half that has been due longest.
  Op W() {
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
void append_phases(RunWriter& order, TwoWays ways, int to_middle, int from_end, int micro_batches) {
  const int steady = micro_batches - 2 * to_middle - from_end;
  for (int i = 0; i < 2 * to_middle; ++i) order.append({ways.F(0)});
  for (int i = 0; i < from_end; ++i) order.append({ways.F(0), ways.F(1)});
  for (int i = 0; i < to_middle; ++i) order.append({ways.I(1), ways.W(), ways.F(1)});
  for (int i = 0; i < steady; ++i) {
    const bool alone = i == 0 && to_middle == 0;  // together they would wait for each other's input
    order.append({alone ? ways.F(0) : ways.F_with(0), ways.B(1), ways.F_with(1), ways.B(0)});
  }
  for (int i = 0; i < to_middle; ++i) order.append({ways.B(1), ways.F_with(1), ways.B(0)});
  for (int i = 0; i < from_end; ++i) {  // weight halves begin to be left for the bubbles to come
    order.append(
        {2 * i < from_end ? ways.B(1) : ways.I(1), 2 * i + 1 < from_end ? ways.B(0) : ways.I(0)});
  }
  for (int i = 0; i < to_middle; ++i) order.append({ways.W(), ways.I(0)});
  for (int i = 0; i < from_end; ++i) order.append({ways.W()});
}

}  // namespace

Schedule make_dual_pipe(const ScheduleInputs& inputs) {
  Schedule schedule = empty_schedule(inputs);
  const std::vector<std::vector<int>> stages = stages_of_ranks(inputs);
  const bool mirrored = inputs.copies == 2;
  const int ranks = static_cast<int>(stages.size());
  const int half = mirrored ? ranks / 2 : ranks;  // ranks from the end to the middle
  const int each = inputs.micro_batches / inputs.copies;
  for (int rank = 0; rank < ranks; ++rank) {
    std::array<int, 2> ways = {stages[rank][0], stages[rank][1]};
    std::array<int, 2> firsts = {0, mirrored ? each : 0};
    const bool beyond = rank >= half;
    if (beyond) {
      std::swap(ways[0], ways[1]);
      std::swap(firsts[0], firsts[1]);
    }
    const int position = beyond ? ranks - 1 - rank : rank;
    RunWriter order;
    append_phases(order, TwoWays(inputs, ways, firsts), half - 1 - position, position + 1, each);
    order.append_updates(inputs, ways);
    schedule.ranks[rank] = {{order.take(), inputs.steps, inputs.micro_batches}};
  }
  return schedule;
}

std::string dual_pipe_problem(const ScheduleShape& shape) {
  if (const std::string wrong = mirrored_problem(shape); !wrong.empty()) return wrong;
  const int least = 2 * shape.ranks;
  if (shape.micro_batches >= least && shape.micro_batches % 2 == 0) return "";
  return "fills both directions of its " + std::to_string(shape.ranks) +
         " ranks; expected an even number of micro-batches, at least " + std::to_string(least) +
         ", got " + std::to_string(shape.micro_batches);
}

std::string dual_pipe_v_problem(const ScheduleShape& shape) {
  const int chunks = shape.stages / shape.ranks;
  if (chunks != 2) {
    return "goes down and up again once; expected 2 chunks, got " + std::to_string(chunks);
  }
  const int least = 2 * shape.ranks;
  if (shape.micro_batches >= least) return "";
  return "fills both ways of its " + std::to_string(shape.ranks) + " ranks; expected at least " +
         std::to_string(least) + " micro-batches, got " + std::to_string(shape.micro_batches);
}

}  // namespace interlock
