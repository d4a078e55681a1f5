// The list scheduler: a simulation in which a free rank takes the best op that can start first.
// SPDX-License-Identifier: Apache-2.0
//
// Outline: the state is the next micro-batch and the end times of every slot of the table. Each
// rank keeps the op that it would start next; the rank that starts earliest does so, and those that
// its op may concern choose again. Starts only grow, so what is ready at one is known when it is
// chosen.
#include "sim/plan/orders/list_order.h"

#include <algorithm>

#include "sim/plan/orders/list_table.h"

namespace interlock {

namespace {

class ListScheduler {
 public:
  ListScheduler(const ListInputs& inputs, const ListRules& rules)
      : inputs_(inputs),
        rules_(rules),
        table_(make_list_table(inputs)),
        order_(table_.ranks.size()) {}
  std::optional<std::vector<std::vector<Op>>> run();

 private:
  int due(int micro_batch) const;
  double ready(const ListSlot& slot) const;
  struct Holding {
    double holds = 0, needs = 0;
  };
  Holding holding_of(const ListRank& rank, int micro_batch) const;
  bool leaves_room(const ListRank& rank, int micro_batch, double bytes) const;
  bool allowed(const ListSlot& slot) const;
  int urgency(const ListSlot& slot) const;
  bool better(const ListSlot& a, const ListSlot& b) const;
  void choose(ListRank& rank);
  void start(ListRank& rank);

  const ListInputs& inputs_;
  const ListRules& rules_;
  ListTable table_;
  double now_ = 0;
  std::vector<std::vector<Op>> order_;
};

/// The last micro-batch, at or before this one, after which an update comes; below 0: none yet.
int ListScheduler::due(int micro_batch) const {
  const int every = inputs_.update_every;
  return micro_batch < 0 ? -1 : (micro_batch + 1) / every * every - 1;
}

double ListScheduler::ready(const ListSlot& slot) const {
  double time = 0;
  for (const ListSlot::Need& need : slot.needs) {
    const int before = slot.next - need.shift;
    const int micro_batch = need.update ? due(before) : before;
    if (micro_batch >= 0)
      time = std::max(time, table_.slots[need.slot].ends[micro_batch] + need.delay);
  }
  return time;
}

/// Returns true if every micro-batch under way on the rank can still finish, one after the other,
/// after `bytes` more for `micro_batch`: the room that is left must be enough for the oldest; that
/// one then frees all that it holds, and so on (the banker's algorithm). The oldest may always go
/// on.
bool ListScheduler::leaves_room(const ListRank& rank, int micro_batch, double bytes) const {
  if (bytes <= 0) return true;
  int oldest = inputs_.micro_batches, newest = 0;
  for (const int s : rank.stages) {
    oldest = std::min(oldest, table_.slots[table_.weights[s]].next);
    newest = std::max(newest, table_.slots[table_.forward[s]].next);
  }
  if (micro_batch <= oldest) return true;
  double left = rank.limit - rank.used - bytes - rank.transient;
  for (int b = oldest; b <= newest && b < inputs_.micro_batches; ++b) {
    const double more = b == micro_batch ? bytes : 0;
    const Holding holding = holding_of(rank, b);
    if (holding.needs - more > left) return false;
    left += holding.holds + more;
  }
  return true;
}

/// Returns the bytes that a micro-batch holds on a rank, and those that it still needs to finish.
ListScheduler::Holding ListScheduler::holding_of(const ListRank& rank, int micro_batch) const {
  Holding holding;
  for (const int s : rank.stages) {
    auto done = [&](int slot) { return table_.slots[slot].next > micro_batch; };
    if (done(table_.weights[s])) continue;
    const double whole = table_.growth[s], message = table_.message[s];
    const bool arrived = s > 0 && done(table_.forward[s - 1]);
    const double held = done(table_.forward[s]) ? whole : arrived ? message : 0;
    holding.holds += held;
    holding.needs += whole - held;
  }
  return holding;
}

bool ListScheduler::allowed(const ListSlot& slot) const {
  const ListOp& op = *slot.op;
  if (op.kind == OpKind::F && !rules_.ahead.empty()) {
    int back = table_.forward[slot.stage] + 1;
    while (!makes_input_gradient(table_.slots[back].op->kind)) ++back;
    if (slot.next - table_.slots[back].next >= rules_.ahead[slot.stage]) return false;
  }
  if (inputs_.memory.empty()) return true;
  if (!leaves_room(table_.ranks[slot.rank], slot.next, op.take - op.give)) return false;
  return slot.to_rank < 0 || leaves_room(table_.ranks[slot.to_rank], slot.next, op.sent);
}

/// Lower is sooner.
int ListScheduler::urgency(const ListSlot& slot) const {
  const OpKind kind = slot.op->kind;
  const ListRank& rank = table_.ranks[slot.rank];
  if (kind == OpKind::W && !rules_.held.empty() && rank.held > rules_.held[slot.rank]) return 0;
  if (kind == OpKind::U) return 4;
  if (slot.filling) return 3;
  if (kind == OpKind::F) return rules_.forward_first ? 1 : 2;
  return rules_.forward_first ? 2 : 1;
}

bool ListScheduler::better(const ListSlot& a, const ListSlot& b) const {
  const int first = urgency(a), second = urgency(b);
  if (first != second) return first < second;
  if (a.next != b.next) return a.next < b.next;
  return a.op->kind == OpKind::F ? a.stage > b.stage : a.stage < b.stage;
}

void ListScheduler::choose(ListRank& rank) {
  std::vector<std::pair<int, double>> known;  // slots that could start, and when
  double earliest = kInfinity;
  for (const int i : rank.slots) {
    const ListSlot& slot = table_.slots[i];
    if (slot.next >= inputs_.micro_batches) continue;
    const double start = std::max({rank.free, ready(slot), now_});
    if (start == kInfinity || !allowed(slot)) continue;
    known.emplace_back(i, start);
    earliest = std::min(earliest, start);
  }
  rank.chosen = -1;
  rank.start = kInfinity;
  for (const auto& [i, start] : known) {
    if (start > earliest ||
        (rank.chosen >= 0 && !better(table_.slots[i], table_.slots[rank.chosen])))
      continue;
    rank.chosen = i;
    rank.start = start;
  }
  if (rank.chosen < 0) return;
  const ListSlot& slot = table_.slots[rank.chosen];
  const int level = urgency(slot);
  const double patience = slot.filling ? rules_.patience : rules_.first_patience;
  const double until = earliest + patience * slot.op->time;
  for (const auto& [i, start] : known) {
    if (start >= until || urgency(table_.slots[i]) >= level) continue;
    if (rank.start > earliest && start >= rank.start) continue;  // the first of the better ones
    rank.chosen = i;
    rank.start = start;
  }
}

void ListScheduler::start(ListRank& rank) {
  ListSlot& slot = table_.slots[rank.chosen];
  const ListOp& op = *slot.op;
  now_ = rank.start;
  order_[slot.rank].push_back({op.kind, slot.stage, slot.next, op.loss});
  rank.free = rank.start + op.time;
  slot.ends[slot.next] = rank.free;
  slot.next += op.kind == OpKind::U ? inputs_.update_every : 1;
  rank.used += op.take - op.give;
  if (slot.to_rank >= 0) table_.ranks[slot.to_rank].used += op.sent;
  if (op.kind == OpKind::W) {
    --rank.held;
  } else if (rank.chosen + 1 == table_.weights[slot.stage] && (&slot + 1)->op->kind == OpKind::W) {
    ++rank.held;
  }
}

std::optional<std::vector<std::vector<Op>>> ListScheduler::run() {
  for (ListRank& rank : table_.ranks) choose(rank);
  for (;;) {
    ListRank* first = &table_.ranks.front();
    for (ListRank& rank : table_.ranks) {
      if (rank.start < first->start) first = &rank;
    }
    if (first->start == kInfinity) break;
    start(*first);
    for (const int neighbour : first->neighbours) choose(table_.ranks[neighbour]);
  }
  for (const ListSlot& slot : table_.slots) {
    if (slot.next < inputs_.micro_batches) return std::nullopt;
  }
  return order_;
}

}  // namespace

std::optional<std::vector<std::vector<Op>>> list_order(const ListInputs& inputs,
                                                       const ListRules& rules) {
  return ListScheduler(inputs, rules).run();
}

}  // namespace interlock
