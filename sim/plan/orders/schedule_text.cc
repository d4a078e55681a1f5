// Schedules read from text and written as text.
// SPDX-License-Identifier: Apache-2.0
//
// Outline of reading: cells to actions, old letters to new ones, the way of each micro-batch
// through the ranks (which tells copies of a stage apart), the order itself, and then the checks of
// it.
#include "sim/plan/orders/schedule_text.h"

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

/// The action of `draft` that became op `place` of `rank`.
const Action& compute_at(const Draft& draft, int rank, int place) {
  for (const Action& action : draft.rows[rank]) {
    if (is_compute(action) && place-- == 0) return action;
  }
  CHECK(false, "an op that was read from a cell");
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

std::string schedule_text(const StepOrder& order) {
  std::string text;
  for (const auto& ops : order.ranks) {
    std::string line;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].kind == OpKind::U) continue;
      if (!line.empty()) line += ',';
      if (!ops[i].overlaps_next) {
        line += name_of(ops[i], order);
        continue;
      }
      CHECK(i + 1 < ops.size(), "an op overlaps the next one of its rank");
      line += "(" + name_of(ops[i], order) + ";" + name_of(ops[i + 1], order) + ")OVERLAP_F_B";
      ++i;
    }
    text += line + "\n";
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
