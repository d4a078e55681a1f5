// Schedules read from text and written as text.
// SPDX-License-Identifier: Apache-2.0
//
// Outline of reading: cells to actions, old letters to new ones, the way of each micro-batch
// through the ranks (which tells copies of a stage apart), the order itself, and then the checks of
// it.
#include "sim/plan/orders/schedule_text.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "base/error.h"
#include "sim/plan/orders/schedule_draft.h"

namespace interlock {

namespace {

OpKind kind_of(const Action& action) {
  switch (action.word[0]) {
    case 'F':
      return OpKind::F;
    case 'I':
      return OpKind::I;
    case 'W':
      return OpKind::W;
    default:
      return OpKind::B;
  }
}

StepOrder make_order(const Draft& draft) {
  const auto copies = static_cast<int>(draft.ways.size());
  StepOrder order{
      .stages = copies * draft.stages, .copies = copies, .micro_batches = draft.micro_batches};
  for (const auto& way : draft.ways) {
    order.rank_of_stage.insert(order.rank_of_stage.end(), way.begin(), way.end());
  }
  for (const auto& row : draft.rows) {
    auto& ops = order.ranks.emplace_back();
    for (const Action& action : row) {
      if (!is_compute(action)) continue;
      const int first = draft.copy_of[action.micro_batch] * draft.stages;
      const OpKind kind = kind_of(action);
      const int stage = first + action.stage;
      const int loss = kind == OpKind::F ? stage : first + draft.stages - 1;
      ops.push_back({kind, stage, action.micro_batch, loss, action.overlaps_next});
    }
  }
  return order;
}

/// Returns the action of `draft` that became op `place` of `rank`.
const Action& compute_at(const Draft& draft, int rank, int place) {
  for (const Action& action : draft.rows[rank]) {
    if (is_compute(action) && place-- == 0) return action;
  }
  CHECK(false, "an op that was read from a cell");
}

struct WrittenCell {
  std::string text;
  bool message = false;
};
using Rows = std::vector<std::vector<WrittenCell>>;

/// Returns the op at `place`, or the pair that begins there; nothing at the end.
std::span<const Op> next_cell(std::span<const Op> ops, std::size_t place) {
  if (place == ops.size()) return {};
  CHECK(!ops[place].overlaps_next || place + 1 < ops.size(), "an op overlaps the next of its rank");
  return ops.subspan(place, ops[place].overlaps_next ? 2 : 1);
}

std::string cell_text(std::span<const Op> ops, const StepOrder& order) {
  if (ops.size() == 1) return name_of(ops.front(), order);
  return "(" + name_of(ops[0], order) + ";" + name_of(ops[1], order) + ")OVERLAP_F_B";
}

/// Appends the send of what `op` makes to its rank's row, and the receive to the other's.
void append_message(Rows& rows, const Op& op, const StepOrder& order) {
  const int stages = order.stages / order.copies, place = op.stage % stages;
  const bool forward = op.kind == OpKind::F;
  if (op.kind == OpKind::W || place == (forward ? stages - 1 : 0)) return;
  const int ahead = forward ? 1 : -1;
  const int from = order.rank_of_stage[op.stage], to = order.rank_of_stage[op.stage + ahead];
  if (from == to) return;
  const std::string what = (forward ? "F" : "B") + std::to_string(op.micro_batch);
  rows[from].push_back({std::to_string(place) + "SEND_" + what, true});
  rows[to].push_back({std::to_string(place + ahead) + "RECV_" + what, true});
}

/// Writes an order cell by cell, each once what it needs is written.
class RowsWriter {
 public:
  RowsWriter(const StepOrder& order, TextMessages messages)
      : order_(order),
        messages_(messages != TextMessages::None),
        stages_(order.stages / order.copies),
        rows_(order.ranks.size()),
        next_(order.ranks.size(), 0) {}

  /// Writes the next cell of `rank`. Returns false if it waits for another rank, or at the end.
  bool write_next(std::size_t rank) {
    const std::span<const Op> ops = next_cell(order_.ranks[rank], next_[rank]);
    const auto ready = [this](const Op& op) { return is_ready(op); };
    if (ops.empty() || !std::all_of(ops.begin(), ops.end(), ready)) return false;
    next_[rank] += ops.size();
    if (ops.front().kind == OpKind::U) return true;
    rows_[rank].push_back({cell_text(ops, order_)});
    for (const Op& op : ops) finish(op);
    return true;
  }
  bool at_end(std::size_t rank) const { return next_[rank] == order_.ranks[rank].size(); }
  const Rows& rows() const { return rows_; }

 private:
  static bool passes_gradient(const Op& op) { return op.kind == OpKind::I || op.kind == OpKind::B; }
  bool is_ready(const Op& op) const {
    const int place = op.stage % stages_;
    if (op.kind == OpKind::F) {
      return place == 0 || forwards_.contains({op.stage - 1, op.micro_batch});
    }
    const bool waits = passes_gradient(op) && place < stages_ - 1;
    return !waits || backwards_.contains({op.stage + 1, op.micro_batch});
  }
  void finish(const Op& op) {
    if (op.kind == OpKind::F) forwards_.insert({op.stage, op.micro_batch});
    if (passes_gradient(op)) backwards_.insert({op.stage, op.micro_batch});
    if (messages_) append_message(rows_, op, order_);
  }

  const StepOrder& order_;
  bool messages_;
  int stages_;  // of a copy
  Rows rows_;
  std::vector<std::size_t> next_;                       // (ranks) op
  std::set<std::pair<int, int>> forwards_, backwards_;  // stages and micro-batches that are done
};

std::string row_text(const std::vector<WrittenCell>& row, bool batched) {
  std::string text;
  for (std::size_t i = 0; i < row.size();) {
    std::size_t end = i + 1;
    while (batched && row[i].message && end < row.size() && row[end].message) ++end;
    std::string cell = row[i].text;
    for (std::size_t k = i + 1; k < end; ++k) cell += ";" + row[k].text;
    text += (text.empty() ? "" : ",") + (end > i + 1 ? "(" + cell + ")BATCH_P2P" : cell);
    i = end;
  }
  return text;
}

}  // namespace

StepOrder parse_schedule_text(std::string_view text, const std::string& file) {
  Draft draft{.cells = split_cells(text, file)};
  draft.rows = read_actions(draft.cells);
  require_ops(draft);
  read_old_letters(draft);
  find_forwards(draft);
  find_copies(draft);
  StepOrder order = make_order(draft);
  if (const auto mistake = find_mistake(order)) {
    draft.refuse(compute_at(draft, mistake->rank, mistake->place), mistake->message);
  }
  check_dropped(draft);
  return order;
}

std::string schedule_text(const StepOrder& order, TextMessages messages) {
  RowsWriter writer(order, messages);
  const std::size_t ranks = order.ranks.size();
  for (bool more = true; more;) {
    more = false;
    for (std::size_t rank = 0; rank < ranks; ++rank) more |= writer.write_next(rank);
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    CHECK(writer.at_end(rank), "an order in which every rank can go on");
  }
  std::string text;
  for (const auto& row : writer.rows()) {
    text += row_text(row, messages == TextMessages::Batched) + "\n";
  }
  return text;
}

StepOrder first_step(const Schedule& schedule) {
  CHECK(schedule.steps == 1, "a schedule of one step");
  if (schedule.slices > 1) {
    throw Error("the text form has no token slices; expected a schedule of whole micro-batches");
  }
  StepOrder order{.stages = schedule.stages,
                  .copies = schedule.copies,
                  .micro_batches = schedule.micro_batches,
                  .rank_of_stage = schedule.rank_of_stage};
  for (const auto& sequences : schedule.ranks) {
    if (sequences.size() != 1) {
      throw Error(
          "a rank chooses its order while it runs; expected one stage a rank, or a "
          "schedule that lays out several");
    }
    order.ranks.push_back(expand(sequences.front()));
    bool updated = false;
    for (const Op& op : order.ranks.back()) {
      if (op.kind == OpKind::H || op.kind == OpKind::R || (updated && op.kind != OpKind::U)) {
        throw Error(
            "the text form has no letters for heads or for updates within a step; "
            "expected a schedule of global training that updates at its end");
      }
      updated = updated || op.kind == OpKind::U;
    }
  }
  return order;
}

}  // namespace interlock
