// The table of the list scheduler.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/orders/list_table.h"

#include <algorithm>

namespace interlock {

namespace {

class TableBuilder {
 public:
  explicit TableBuilder(const ListInputs& inputs)
      : inputs_(inputs), stages_(static_cast<int>(inputs.ops.size())) {}
  ListTable build();

 private:
  void add_slots(int stage);
  void add_needs(ListSlot& slot, int index);
  void await(ListSlot& slot, int stage, OpKind kind, int loss);
  void add_to_rank(int stage);
  int find(int stage, OpKind kind, int loss) const;

  const ListInputs& inputs_;
  int stages_;
  std::vector<int> first_;  // (stages + 1) slots of a stage
  ListTable table_;
};

ListTable TableBuilder::build() {
  for (int stage = 0; stage < stages_; ++stage) add_slots(stage);
  first_.push_back(static_cast<int>(table_.slots.size()));
  int index = 0;
  for (ListSlot& slot : table_.slots) add_needs(slot, index++);
  const auto& ranks = inputs_.rank_of_stage;
  table_.ranks.resize(*std::max_element(ranks.begin(), ranks.end()) + 1);
  for (int stage = 0; stage < stages_; ++stage) add_to_rank(stage);
  for (std::size_t r = 0; r < inputs_.memory.size(); ++r) {
    table_.ranks[r].limit = inputs_.memory[r];
  }
  return table_;
}

void TableBuilder::add_slots(int stage) {
  auto& slots = table_.slots;
  first_.push_back(static_cast<int>(slots.size()));
  table_.forward.push_back(first_.back());
  for (const ListOp& op : inputs_.ops[stage]) {
    ListSlot slot{.stage = stage, .rank = inputs_.rank_of_stage[stage], .op = &op};
    slot.next = op.kind == OpKind::U ? inputs_.update_every - 1 : 0;
    slot.ends.assign(inputs_.micro_batches, kInfinity);
    slots.push_back(slot);
  }
  const bool updates = slots.back().op->kind == OpKind::U;
  table_.weights.push_back(static_cast<int>(slots.size()) - (updates ? 2 : 1));
}

int TableBuilder::find(int stage, OpKind kind, int loss) const {
  for (int i = first_[stage]; i < first_[stage + 1]; ++i) {
    const ListOp& op = *table_.slots[i].op;
    const bool same = makes_input_gradient(kind) ? makes_input_gradient(op.kind) && op.loss == loss
                                                 : op.kind == kind;
    if (same) return i;
  }
  return -1;
}

/// An op of another stage must have sent its message.
void TableBuilder::await(ListSlot& slot, int stage, OpKind kind, int loss) {
  const int index = find(stage, kind, loss);
  ListSlot& sender = table_.slots[index];
  const bool away = sender.rank != slot.rank;
  slot.needs.push_back({index, 0, away ? sender.op->delay : 0});
  if (away) sender.to_rank = slot.rank;
}

/// An op follows the one before of its micro-batch, and the messages that it reads.
void TableBuilder::add_needs(ListSlot& slot, int index) {
  const int stage = slot.stage;
  const OpKind kind = slot.op->kind;
  if (kind == OpKind::F) {
    if (stage > 0) await(slot, stage - 1, OpKind::F, stage - 1);
    if (inputs_.in_flight == 0) return;
    slot.needs.push_back({table_.weights[stage], inputs_.in_flight});
    const int update = find(stage, OpKind::U, stage);
    if (update >= 0) slot.needs.push_back({update, inputs_.in_flight, 0, true});
    return;
  }
  slot.needs.push_back({index - 1, 0});
  const StageRole& role = inputs_.roles[stage];
  const bool last = slot.op->loss == role.traversals.back().loss;
  slot.filling = kind == OpKind::W;
  if (!makes_input_gradient(kind)) return;
  slot.filling = last && !role.traversals.back().to_previous;
  if (slot.op->loss > stage) await(slot, stage + 1, OpKind::I, slot.op->loss);
  for (const int loss : added_before(role, stage, slot.op->loss)) {
    await(slot, stage + 1, OpKind::I, loss);
  }
}

void TableBuilder::add_to_rank(int stage) {
  const auto& rank_of_stage = inputs_.rank_of_stage;
  ListRank& rank = table_.ranks[rank_of_stage[stage]];
  rank.stages.push_back(stage);
  for (int i = first_[stage]; i < first_[stage + 1]; ++i) {
    rank.slots.push_back(i);
    const ListOp& op = *table_.slots[i].op;
    rank.transient = std::max(rank.transient, std::min(op.give, op.take));
  }
  const ListOp& forward = inputs_.ops[stage].front();
  const bool away = stage > 0 && rank_of_stage[stage - 1] != rank_of_stage[stage];
  const double message = away ? inputs_.ops[stage - 1].front().sent : 0;
  table_.growth.push_back(forward.take - forward.give + message);
  table_.message.push_back(message);
  for (const int other : {stage - 1, stage, stage + 1}) {
    if (other < 0 || other == stages_) continue;
    auto& known = rank.neighbours;
    const int neighbour = rank_of_stage[other];
    if (std::find(known.begin(), known.end(), neighbour) == known.end()) {
      known.push_back(neighbour);
    }
  }
}

}  // namespace

ListTable make_list_table(const ListInputs& inputs) { return TableBuilder(inputs).build(); }

}  // namespace interlock
