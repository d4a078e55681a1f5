// Places of messages in an order.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/orders/message_order.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "base/error.h"

namespace interlock {

namespace {

bool passes_gradient(const Op& op) { return op.kind == OpKind::I || op.kind == OpKind::B; }

/// Returns the ops of the next turn of a rank from op `place` on: one, a pair, or none at the end.
int ops_of_turn(const std::vector<Op>& ops, std::size_t place) {
  if (place == ops.size()) return 0;
  CHECK(!ops[place].overlaps_next || place + 1 < ops.size(), "an op overlaps the next of its rank");
  return ops[place].overlaps_next ? 2 : 1;
}

/// Takes the turns of all ranks, each once what it needs is made.
class TurnTaker {
 public:
  TurnTaker(const StepOrder& order, ReceivePlace place)
      : order_(order),
        early_(place == ReceivePlace::Early),
        stages_(order.stages / order.copies),
        turns_(order.ranks.size()),
        next_(order.ranks.size(), 0) {}

  /// Takes the next ops of `rank`. Returns false if they wait for another rank, or at the end.
  bool take_next(std::size_t rank) {
    const int count = ops_of_turn(order_.ranks[rank], next_[rank]);
    const std::span<const Op> ops =
        std::span(order_.ranks[rank]).subspan(next_[rank], static_cast<std::size_t>(count));
    const auto ready = [this](const Op& op) { return is_ready(op); };
    if (ops.empty() || !std::all_of(ops.begin(), ops.end(), ready)) return false;
    next_[rank] += ops.size();
    if (!early_) receive_for(ops);
    turns_[rank].push_back({.ops = count});
    for (const Op& op : ops) finish(op);
    return true;
  }
  bool at_end(std::size_t rank) const { return next_[rank] == order_.ranks[rank].size(); }
  std::vector<std::vector<RankTurn>> take() { return std::move(turns_); }

 private:
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
    const bool forward = op.kind == OpKind::F;
    if (!forward && !passes_gradient(op)) return;
    if (op.stage % stages_ == (forward ? stages_ - 1 : 0)) return;
    const int from = rank_of(op.stage), to = rank_of(op.stage + (forward ? 1 : -1));
    if (from == to) return;
    turns_[from].push_back({.sends = true, .other_rank = to, .made_by = op});
    if (early_) turns_[to].push_back({.other_rank = from, .made_by = op});
  }
  /// Adds the receives of what `ops` read of other ranks.
  void receive_for(std::span<const Op> ops) {
    for (const Op& op : ops) {
      const bool forward = op.kind == OpKind::F;
      if (!forward && !passes_gradient(op)) continue;
      if (op.stage % stages_ == (forward ? 0 : stages_ - 1)) continue;
      Op maker = op;
      maker.stage += forward ? -1 : 1;
      const int from = rank_of(maker.stage), to = rank_of(op.stage);
      if (from != to) turns_[to].push_back({.other_rank = from, .made_by = maker});
    }
  }
  int rank_of(int stage) const { return order_.rank_of_stage[stage]; }

  const StepOrder& order_;
  bool early_;
  int stages_;  // of a copy
  std::vector<std::vector<RankTurn>> turns_;
  std::vector<std::size_t> next_;                       // (ranks) op
  std::set<std::pair<int, int>> forwards_, backwards_;  // stages and micro-batches that are done
};

}  // namespace

std::vector<std::vector<RankTurn>> turns_with_messages(const StepOrder& order, ReceivePlace place) {
  TurnTaker taker(order, place);
  const std::size_t ranks = order.ranks.size();
  for (bool more = true; more;) {
    more = false;
    for (std::size_t rank = 0; rank < ranks; ++rank) more |= taker.take_next(rank);
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    CHECK(taker.at_end(rank), "an order in which every rank can go on");
  }
  return taker.take();
}

}  // namespace interlock
