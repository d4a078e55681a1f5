// ZB-V: zero bubble with two stages a rank, laid down and up again, in the memory of 1F1B.
// SPDX-License-Identifier: Apache-2.0
//
// Rank r of p has stages r (chunk 0) and 2p - 1 - r (chunk 1), so that the rank that begins a
// micro-batch also ends it and begins its backward, and all ranks hold p pairs of chunks. The order
// is the one made by hand for F = I = W: then no rank waits once it has begun, wherever it is. It
// needs 2p - 1 micro-batches to come into step; of fewer, those that are missing are left out.
// Source: Qi et al., Pipeline Parallelism with Controllable Memory, arXiv 2405.15362.
#include <algorithm>

#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

namespace {

/// The order of a rank, written by the counts of what was written before.
class RankOrder {
 public:
  RankOrder(const ScheduleInputs& inputs, const std::vector<int>& stages)
      : inputs_(inputs), stages_(stages) {}

  struct Cell {
    OpKind kind;
    int chunk;
  };
  /// Appends `times` times the next op of the kind and chunk of each cell.
  void append(int times, std::initializer_list<Cell> cells) {
    int whole = times;  // turns of which no micro-batch is missing
    for (const Cell& cell : cells) {
      whole = std::clamp(inputs_.micro_batches - next(cell), 0, whole);
    }
    order_.append_loop(take(cells, whole), whole, 1);
    for (int turn = whole; turn < times; ++turn) order_.append(take(cells, 1));
  }
  Sequence finish() {
    order_.append_updates(inputs_, stages_);
    return {order_.take(), inputs_.steps, inputs_.micro_batches};
  }

 private:
  int& next(const Cell& cell) { return next_[cell.chunk][static_cast<int>(cell.kind)]; }
  /// Returns the ops of the first of `turns`, and passes all turns.
  std::vector<Op> take(std::initializer_list<Cell> cells, int turns) {
    std::vector<Op> body;
    for (const Cell& cell : cells) {
      const int b = next(cell);
      next(cell) += turns;
      if (b >= inputs_.micro_batches) continue;
      body.push_back(global_op(inputs_, cell.kind, stages_[cell.chunk], b));
    }
    return body;
  }

  const ScheduleInputs& inputs_;
  const std::vector<int>& stages_;  // (chunks)
  int next_[2][7] = {};             // (chunks, kinds) micro-batch
  RunWriter order_;
};

Sequence zb_v_sequence(const ScheduleInputs& inputs, const std::vector<int>& stages, int rank) {
  const int ranks = inputs.stages / 2, after = ranks - rank;
  const int count = std::max(inputs.micro_batches, 2 * ranks - 1);
  constexpr RankOrder::Cell kF0{OpKind::F, 0}, kI0{OpKind::I, 0}, kW0{OpKind::W, 0};
  constexpr RankOrder::Cell kF1{OpKind::F, 1}, kI1{OpKind::I, 1}, kW1{OpKind::W, 1};
  const int down = count - 2 * ranks + rank + 1;  // forwards of chunk 0 after the warm-up
  RankOrder order(inputs, stages);
  order.append(2 * after - 1, {kF0});
  order.append(rank, {kF1, kF0});
  order.append(after, {kF1, kI1, kW1});
  order.append(down, {kF0, kI0, kW0, kF1, kI1, kW1});
  order.append(count - ranks - down, {kI0, kW0, kF1, kI1, kW1});
  order.append(rank, {kI0, kI1});
  order.append(after, {kI0, kW0});
  order.append(rank, {kW1});
  order.append(rank, {kW0});
  return order.finish();
}

Schedule make_zb_v(const ScheduleInputs& inputs) {
  Schedule schedule = empty_schedule(inputs);
  const auto stages = stages_of_ranks(inputs);
  for (std::size_t rank = 0; rank < stages.size(); ++rank) {
    schedule.ranks[rank] = {zb_v_sequence(inputs, stages[rank], static_cast<int>(rank))};
  }
  return schedule;
}

}  // namespace

ScheduleEntry schedules::zb_v() {
  return {.name = "zb-v",
          .split_backward = true,
          .flushes = true,
          .layout = StageLayout::V,
          .chunks = 2,
          .summary = "two stages a rank, down and up again: no bubble in the memory of 1f1b",
          .source = "Qi et al., arXiv 2405.15362",
          .make = make_zb_v,
          .problem = one_v_problem,
          .period = every_micro_batch,
          .bubble = formulas::kNoBubble,
          .stashed = formulas::kDevices};
}

}  // namespace interlock
