// V-half and V-min: two stages a rank, laid as ZB-V lays them, in a half or a third of its memory.
// SPDX-License-Identifier: Apache-2.0
//
// Every six cells of a forward's time the same pattern begins once more, a micro-batch later: cells
// for the forward and the input half of both stages of a rank. Where those of one micro-batch lie
// decides how long it is kept. Weight halves take the cells that are free, the oldest first.
// Between the first micro-batch and the last all cells are taken; before and after, passes move
// into earlier cells: as far as they have what they need, and a forward only while its rank holds
// no more than the pattern does. Behind the last forward, weight halves wait for input halves.
//
// The moves need p + 2 micro-batches; of fewer, those that are missing are left out, as ZB-V does.
// From p + 4 on, more micro-batches repeat the same six cells.
// Parts of a vocabulary that V-half's ranks divide: see VTurns.
//
// Source of the patterns: Qi et al., Pipeline Parallelism with Controllable Memory, arXiv
// 2405.15362, and its authors' code (github.com/sail-sg/zero-bubble-pipeline-parallelism, commit
// 39f2c18, zerobubble/scheduler/zbv_greedy.py). The one move into earlier cells is ours; it comes
// out as short as their two.
#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

namespace {

constexpr int kPeriod = 6;  // cells

/// The passes of a rank. W: the weight halves of both stages, in the order of their input halves.
enum VPass { VForward0, VForward1, VInput1, VInput0, VWeight };
constexpr int kVPasses = 5;

/// Returns the cells of the first four passes of micro-batch 0 on a rank.
using VPattern = std::array<int, 4> (*)(int ranks, int rank);

std::array<int, 4> v_half_pattern(int p, int r) {
  const int shift = p % 2 == 0 ? 3 : 0;  // so that no two passes fall on one cell
  return {2 * r, 3 * p - r - 2, 3 * p + shift + 2 * r - 1, 6 * p + shift - r - 2};
}

std::array<int, 4> v_min_pattern(int p, int r) {
  const int shift = p % 3 == 0 ? 2 : 0;
  return {r, 2 * p - r - 1, 2 * p + shift + r, 4 * p + shift - r - 1};
}

/// The passes of all cells, for as few micro-batches as show all of it.
class VCells {
 public:
  VCells(int ranks, int micro_batches, VPattern pattern)
      : ranks_(ranks),
        count_(std::clamp(micro_batches, ranks + 2, ranks + 4)),
        steady_(pattern(ranks, 0)[VInput0]) {
    for (int r = 0; r < ranks; ++r) {
      rows_.push_back(row_of(pattern(ranks, r)));
      most_ = std::max(most_, *std::max_element(rows_[r].held.begin(), rows_[r].held.end()));
    }
    const int end = static_cast<int>(rows_[0].cells.size());
    for (int cell = 0; cell < end; ++cell) {
      if (cell < steady_ || cell > kPeriod * (count_ - 1)) {
        for (int r = 0; r < ranks_; ++r) move_earlier(r, cell);
      }
    }
    for (Row& row : rows_) put_late_weights(row);
  }

  Sequence sequence(const ScheduleInputs& inputs, const std::vector<int>& stages, int rank) const;

 private:
  struct Pass {
    VPass kind;
    int number;
  };
  struct Row {
    std::vector<std::optional<Pass>> cells;
    std::array<std::vector<int>, kVPasses> at;  // (passes, numbers) cell
    std::vector<Pass> inputs;                   // in the order of their cells
    std::vector<int> held;                      // (cells) forwards without a weight half
    std::vector<int> late;                      // weight halves that wait
  };

  Row row_of(const std::array<int, 4>& first) const;
  /// Returns the first cell that comes after all that a pass needs.
  int earliest(int rank, Pass pass) const;
  void move_earlier(int rank, int cell);
  /// Returns the op in `cell`; nothing if it is free, or of a micro-batch that is missing.
  static std::optional<Op> op_of(const Row& row, int cell, const ScheduleInputs& inputs,
                                 const std::vector<int>& stages);
  static void put_late_weights(Row& row);

  int ranks_, count_;
  int steady_;    // the first cell from which on rank 0 does all that it ever does
  int most_ = 0;  // forwards that a rank holds
  std::vector<Row> rows_;
};

VCells::Row VCells::row_of(const std::array<int, 4>& first) const {
  Row row;
  const int end = kPeriod * (count_ + 2 * ranks_ + 1);  // none of a rank's passes comes later
  row.cells.resize(static_cast<std::size_t>(end));
  for (int kind = 0; kind < VWeight; ++kind) {
    for (int number = 0; number < count_; ++number) {
      const int cell = first[kind] + kPeriod * number;
      row.cells[cell] = {static_cast<VPass>(kind), number};
      row.at[kind].push_back(cell);
    }
  }
  int held = 0;
  for (std::size_t cell = 0; cell < row.cells.size(); ++cell) {
    std::optional<Pass>& pass = row.cells[cell];
    const std::size_t weights = row.at[VWeight].size();
    if (!pass && weights < row.inputs.size()) {
      pass = {VWeight, static_cast<int>(weights)};
      row.at[VWeight].push_back(static_cast<int>(cell));
      --held;
    } else if (pass && pass->kind <= VForward1) {
      ++held;
    } else if (pass) {
      row.inputs.push_back(*pass);
    }
    row.held.push_back(held);
  }
  return row;
}

int VCells::earliest(int rank, Pass pass) const {
  const auto [kind, number] = pass;
  const Row& row = rows_[rank];
  const bool down = kind == VForward0 || kind == VInput1, ends = rank == (down ? 0 : ranks_ - 1);
  int after = number > 0 ? row.at[kind][number - 1] : -1;
  if (kind == VWeight) {
    after = std::max(after, row.at[row.inputs[number].kind][row.inputs[number].number]);
  } else if (!ends) {
    after = std::max(after, rows_[down ? rank - 1 : rank + 1].at[kind][number]);
  } else if (kind != VForward0) {
    after = std::max(after, row.at[kind - 1][number]);
  }
  return after + 1;
}

void VCells::move_earlier(int rank, int cell) {
  Row& row = rows_[rank];
  if (!row.cells[cell]) return;
  const Pass pass = *row.cells[cell];
  row.cells[cell].reset();
  if (pass.kind == VWeight && cell > steady_) {
    for (std::size_t c = cell; c < row.held.size(); ++c) ++row.held[c];
    return row.late.push_back(pass.number);
  }
  const bool forward = pass.kind <= VForward1;
  int best = cell;
  for (int c = cell - 1, first = earliest(rank, pass); c >= first; --c) {
    if (forward && row.held[c] >= most_) break;
    if (!row.cells[c]) best = c;
  }
  const int change = forward ? 1 : pass.kind == VWeight ? -1 : 0;
  for (int c = best; c < cell; ++c) row.held[c] += change;
  row.cells[best] = pass;
  row.at[pass.kind][pass.number] = best;
}

void VCells::put_late_weights(Row& row) {
  auto next = row.late.begin();
  for (std::size_t cell = 0; cell < row.cells.size() && next != row.late.end(); ++cell) {
    const Pass& input = row.inputs[*next];
    if (row.cells[cell] || static_cast<int>(cell) < row.at[input.kind][input.number]) continue;
    row.cells[cell] = {VWeight, *next++};
  }
}

std::optional<Op> VCells::op_of(const Row& row, int cell, const ScheduleInputs& inputs,
                                const std::vector<int>& stages) {
  if (!row.cells[cell]) return std::nullopt;
  const Pass pass = *row.cells[cell];
  const Pass of = pass.kind == VWeight ? row.inputs[pass.number] : pass;
  if (of.number >= inputs.micro_batches) return std::nullopt;
  const OpKind kind = pass.kind == VWeight     ? OpKind::W
                      : pass.kind <= VForward1 ? OpKind::F
                                               : OpKind::I;
  const bool up = of.kind == VForward1 || of.kind == VInput1;
  return global_op(inputs, kind, stages[up ? 1 : 0], of.number);
}

Sequence VCells::sequence(const ScheduleInputs& inputs, const std::vector<int>& stages,
                          int rank) const {
  const Row& row = rows_[rank];
  const int more = std::max(inputs.micro_batches - count_, 0);
  RunWriter order;
  const auto ops_of = [&](int first, int end, int later) {
    std::vector<Op> ops;
    for (int cell = first; cell < end; ++cell) {
      if (const auto op = op_of(row, cell, inputs, stages)) {
        ops.push_back(*op);
        ops.back().micro_batch += later;
      }
    }
    return ops;
  };
  const int end = static_cast<int>(row.cells.size());
  for (const Op& op : ops_of(0, steady_, 0)) order.append({op});
  if (more > 0) order.append_loop(ops_of(steady_, steady_ + kPeriod, 0), more, 1);
  for (const Op& op : ops_of(steady_, end, more)) order.append({op});
  order.append_updates(inputs, stages);
  return {order.take(), inputs.steps, inputs.micro_batches};
}

Schedule make_v_shape(const ScheduleInputs& inputs, VPattern pattern) {
  Schedule schedule = empty_schedule(inputs);
  const auto stages = stages_of_ranks(inputs);
  const VCells cells(static_cast<int>(stages.size()), inputs.micro_batches, pattern);
  for (std::size_t rank = 0; rank < stages.size(); ++rank) {
    schedule.ranks[rank] = {cells.sequence(inputs, stages[rank], static_cast<int>(rank))};
  }
  return schedule;
}

/// V-half whose ranks also run their parts of the vocabulary: the pattern with a period more from
/// forwards to input halves for each barrier, and its passes in the order of their cells. In a turn
/// all ranks run parts: E of the micro-batch that `kept` turns later comes in, T of the one before,
/// S of the one whose last forward has ended on rank 0 a pass ago (the broadcast's time), G of one
/// that has gone back. Where a turn lies among the passes of a rank follows from times, all passes
/// alike and parts without any; what rank 0 has from parts it runs behind their turn.
/// Source: Yeung et al., arXiv 2411.05288, and the branch v-half-vocab of sail-sg/
/// zero-bubble-pipeline-parallelism (scheduler/zbv_greedy.py, passes.py).
class VTurns {
 public:
  VTurns(int ranks, int micro_batches, int barriers)
      : ranks_(ranks),
        kept_(ranks / 2 + 1),
        count_(std::min(micro_batches, 2 * kept_ + 6)),
        more_(micro_batches - count_),
        barriers_(barriers) {
    for (int r = 0; r < ranks; ++r) rows_.push_back(row_of(r));
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < ranks_; ++r) moved = run(r) || moved;
    }
    for (const Row& row : rows_) CHECK(row.next == row.passes.size(), "an order that can be run");
  }

  Sequence sequence(const ScheduleInputs& inputs, const std::vector<int>& stages, int rank) const;

 private:
  /// VForward0 to VInput0, then weight halves of the stage on the way up, and on the way down.
  static constexpr int kKinds = 6;
  struct Pass {
    int kind, number, start;
  };
  struct Row {
    std::vector<Pass> passes;
    std::size_t next = 0;  // the first that has not run
    int free = 0;
    std::array<std::vector<int>, kKinds> ends;  // (kinds, numbers) of those that have run
  };

  Row row_of(int rank) const;
  bool run(int rank);
  /// Returns when a pass has all that it needs; nothing if that is not known yet.
  std::optional<int> ready_at(int rank, const Pass& pass) const;
  /// Returns when a pass has ended; nothing if it has not.
  std::optional<int> end_of(int rank, int kind, int number) const {
    const std::vector<int>& ends = rows_[rank].ends[kind];
    return number < static_cast<int>(ends.size()) ? std::optional(ends[number]) : std::nullopt;
  }
  /// Returns when turn `number` is, if that is known: between passes that begin then and later.
  std::optional<int> turn_at(int number) const {
    const auto end = end_of(0, VForward1, std::min(number, count_ - 1));
    if (!end) return end;
    return *end + (number < count_ ? 1 : 5);  // the last T comes two passes of both kinds later
  }
  void append_turn(std::vector<Op>& body, const ScheduleInputs& inputs,
                   const std::vector<int>& stages, int turn) const;

  int ranks_;
  int kept_;   // micro-batches, without what barriers take
  int count_;  // micro-batches, enough to show all of the order
  int more_;   // that repeat the turn in its middle
  int barriers_;
  std::vector<Row> rows_;
};

VTurns::Row VTurns::row_of(int rank) const {
  std::array<int, 4> first = v_half_pattern(ranks_, rank);
  first[VInput1] += kPeriod * barriers_;
  first[VInput0] += kPeriod * barriers_;
  const int end = first[VInput0] + kPeriod * (count_ - 1) + 1;
  std::vector<std::optional<Pass>> cells(static_cast<std::size_t>(end));
  for (int kind = 0; kind < VWeight; ++kind) {
    for (int number = 0; number < count_; ++number) {
      cells[first[kind] + kPeriod * number] = {kind, number, 0};
    }
  }
  Row row;
  std::array<int, kKinds> made = {};
  const auto add = [&](const Pass& pass) {
    row.passes.push_back(pass);
    ++made[pass.kind];
  };
  const auto add_weights = [&] {  // those that wait, of the way up before those of the way down
    for (const int kind : {4, 5}) {
      if (made[kind] < made[kind - 2]) return add({kind, made[kind], 0});
    }
  };
  for (const auto& cell : cells) cell ? add(*cell) : add_weights();
  while (made[5] < count_) add_weights();
  return row;
}

std::optional<int> VTurns::ready_at(int rank, const Pass& pass) const {
  const auto [kind, number, start] = pass;
  if (kind >= VWeight) return end_of(rank, kind - 2, number);
  const bool down = kind == VForward0 || kind == VInput1;
  if (rank != (down ? 0 : ranks_ - 1)) return end_of(down ? rank - 1 : rank + 1, kind, number);
  if (kind == VForward0 && number < kept_) return 0;
  if (!down) return end_of(rank, kind - 1, number);
  const auto turn = turn_at(kind == VForward0 ? number - kept_ : number + barriers_ - 1);
  return turn ? std::optional(*turn + 1) : turn;
}

bool VTurns::run(int rank) {
  Row& row = rows_[rank];
  const std::size_t before = row.next;
  for (; row.next < row.passes.size(); ++row.next) {
    Pass& pass = row.passes[row.next];
    const std::optional<int> ready = ready_at(rank, pass);
    if (!ready) break;
    pass.start = std::max(row.free, *ready);
    row.free = pass.start + 1;
    row.ends[pass.kind].push_back(row.free);
  }
  return row.next != before;
}

void VTurns::append_turn(std::vector<Op>& body, const ScheduleInputs& inputs,
                         const std::vector<int>& stages, int turn) const {
  const auto add = [&](OpKind kind, int stage, int number) {
    if (number >= 0 && number < count_) body.push_back(global_op(inputs, kind, stage, number));
  };
  if (turn < count_) add(OpKind::E, stages[0], turn + kept_);
  add(OpKind::T, stages[1], turn - 1);
  if (turn == count_) return;
  add(OpKind::S, stages[1], turn);
  add(OpKind::G, stages[0], turn - kept_ - 2);
}

Sequence VTurns::sequence(const ScheduleInputs& inputs, const std::vector<int>& stages,
                          int rank) const {
  const int middle = kept_ + 3;  // a turn that those before and behind it are like
  RunWriter order;
  std::vector<Op> body;
  int turn = -1;
  const auto end_turn = [&] {
    for (Op& op : body) op.micro_batch += turn > middle ? more_ : 0;
    if (turn == middle && more_ > 0) {
      order.append_loop(body, more_ + 1, 1);
    } else if (!body.empty()) {
      order.append(body);
    }
    body.clear();
  };
  const auto begin_turn = [&] {
    end_turn();
    append_turn(body, inputs, stages, ++turn);
  };
  for (int b = 0; b < std::min(kept_, count_); ++b) {
    order.append({global_op(inputs, OpKind::E, stages[0], b)});
  }
  for (const auto& [kind, number, start] : rows_[rank].passes) {
    while (turn < count_ && *turn_at(turn + 1) < start) begin_turn();
    const OpKind op = kind >= VWeight ? OpKind::W : kind <= VForward1 ? OpKind::F : OpKind::I;
    const bool up = kind == VForward1 || kind == VInput1 || kind == VWeight;
    body.push_back(global_op(inputs, op, stages[up ? 1 : 0], number));
  }
  while (turn < count_) begin_turn();
  end_turn();
  for (int b = std::max(inputs.micro_batches - kept_ - 2, 0); b < inputs.micro_batches; ++b) {
    order.append({global_op(inputs, OpKind::G, stages[0], b)});
  }
  order.append_updates(inputs, stages);
  return {order.take(), inputs.steps, inputs.micro_batches};
}

Schedule make_v_half(const ScheduleInputs& inputs) {
  if (inputs.policy.vocabulary == VocabularySplit::Whole) {
    return make_v_shape(inputs, v_half_pattern);
  }
  Schedule schedule = empty_schedule(inputs);
  const auto stages = stages_of_ranks(inputs);
  const int barriers = inputs.policy.vocabulary == VocabularySplit::TwoBarriers ? 2 : 1;
  const VTurns turns(static_cast<int>(stages.size()), inputs.micro_batches, barriers);
  for (std::size_t rank = 0; rank < stages.size(); ++rank) {
    schedule.ranks[rank] = {turns.sequence(inputs, stages[rank], static_cast<int>(rank))};
  }
  return schedule;
}

}  // namespace

// The formulas of the stash are the authors'; they give the bubble's leading term, p/2m, alone. In
// cells, of which a micro-batch has six, its whole is 3p - 7 or 3p - 4, from p + 2 micro-batches
// on: 6m busy cells of a rank, and what lies between its first and its last.
ScheduleEntry schedules::v_half() {
  return {.name = "v-half",
          .split_backward = true,
          .flushes = true,
          .layout = StageLayout::V,
          .chunks = 2,
          .summary = "zb-v in half of its memory, with some idle time",
          .source = "Qi et al., arXiv 2405.15362",
          .make = make_v_half,
          .problem = one_v_problem,
          .period = every_micro_batch,
          .bubble = {"(3p - 7) / (6m + 3p - 7), p even",
                     [](const PipelineShape& s) {
                       const int p = s.devices;
                       const int idle = std::max(3 * p - (p % 2 == 0 ? 7 : 4), p - 1);
                       return formulas::share(idle, 6.0 * s.micro_batches);
                     }},
          .stashed = {"p/2 + 1, rounded down", [](const PipelineShape& s) -> double {
                        const int kept = s.devices / 2 + 1;
                        return kept;
                      }}};
}

// 4p - 5 or 4p - 7 cells are the whole of 2p/3m.
ScheduleEntry schedules::v_min() {
  return {.name = "v-min",
          .split_backward = true,
          .flushes = true,
          .layout = StageLayout::V,
          .chunks = 2,
          .summary = "zb-v in a third of its memory, with more idle time",
          .source = "Qi et al., arXiv 2405.15362",
          .make = [](const ScheduleInputs& in) { return make_v_shape(in, v_min_pattern); },
          .problem = one_v_problem,
          .period = every_micro_batch,
          .bubble = {"(4p - 5) / (6m + 4p - 5), 3 no divisor of p",
                     [](const PipelineShape& s) {
                       const int p = s.devices;
                       const int idle = std::max(4 * p - (p % 3 == 0 ? 7 : 5), p - 1);
                       return formulas::share(idle, 6.0 * s.micro_batches);
                     }},
          .stashed = {"(p + 4)/3, rounded down", [](const PipelineShape& s) -> double {
                        const int kept = (s.devices + 4) / 3;
                        return kept;
                      }}};
}

}  // namespace interlock
