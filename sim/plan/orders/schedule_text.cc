// Schedules read from text and written as text.
// SPDX-License-Identifier: Apache-2.0
//
// Outline of reading: cells to actions, old letters to new ones, the way of each micro-batch
// through the ranks (which tells copies of a stage apart), the order itself, and then the checks of
// it.
#include "sim/plan/orders/schedule_text.h"

#include <span>

#include "base/error.h"
#include "sim/plan/orders/message_order.h"
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

/// Returns the cell of the ops of one turn.
std::string cell_text(std::span<const Op> ops, const StepOrder& order) {
  if (ops.size() == 1) return name_of(ops.front(), order);
  return "(" + name_of(ops[0], order) + ";" + name_of(ops[1], order) + ")OVERLAP_F_B";
}

/// Returns e.g. "1RECV_F0", of a message that 0F0 makes: of the stage at that end.
std::string message_text(const RankTurn& turn, const StepOrder& order) {
  const Op& op = turn.made_by;
  const bool forward = op.kind == OpKind::F;
  const int stage = op.stage % (order.stages / order.copies);
  const int end = turn.sends ? stage : stage + (forward ? 1 : -1);
  return std::to_string(end) + (turn.sends ? "SEND_" : "RECV_") + (forward ? "F" : "B") +
         std::to_string(op.micro_batch);
}

/// Returns the row of a rank; messages that stand side by side are one cell if `batched`.
std::string row_text(const std::vector<RankTurn>& turns, const std::vector<Op>& ops,
                     const StepOrder& order, TextMessages messages) {
  std::vector<std::string> cells;
  std::size_t place = 0;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const auto count = static_cast<std::size_t>(turns[i].ops);
    if (count > 0) {
      if (ops[place].kind != OpKind::U) {
        cells.push_back(cell_text(std::span(ops).subspan(place, count), order));
      }
      place += count;
      continue;
    }
    if (messages == TextMessages::None) continue;
    std::string cell = message_text(turns[i], order);
    const std::size_t first = i;
    while (messages == TextMessages::Batched && i + 1 < turns.size() && turns[i + 1].ops == 0) {
      cell += ";" + message_text(turns[++i], order);
    }
    cells.push_back(i > first ? "(" + cell + ")BATCH_P2P" : cell);
  }
  std::string text;
  for (const std::string& cell : cells) text += (text.empty() ? "" : ",") + cell;
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
  const auto turns = turns_with_messages(order, ReceivePlace::Early);
  std::string text;
  for (std::size_t rank = 0; rank < turns.size(); ++rank) {
    text += row_text(turns[rank], order.ranks[rank], order, messages) + "\n";
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
