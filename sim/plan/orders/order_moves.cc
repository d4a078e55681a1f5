// Moving ops about.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/orders/order_moves.h"

#include <algorithm>

namespace interlock {

namespace {

constexpr int kFarthest = 6;  // places

/// Returns true if two neighbouring ops of a rank must keep their order: ops of one micro-batch and
/// stage, of one kind and stage (messages keep their order), ops that `in_flight` keeps apart, and
/// every op beside an update.
bool bound(const Op& before, const Op& after, int in_flight) {
  if (before.kind == OpKind::U || after.kind == OpKind::U) return true;
  if (before.stage != after.stage) return false;
  const bool makes_weights = before.kind == OpKind::W || before.kind == OpKind::B;
  if (in_flight > 0 && after.kind == OpKind::F && makes_weights &&
      before.micro_batch <= after.micro_batch - in_flight) {
    return true;
  }
  return before.micro_batch == after.micro_batch ||
         (before.kind == after.kind && before.loss == after.loss);
}

/// Which ops to move, and how far.
struct Move {
  Op like;  // kind, stage and loss; the first micro-batch
  int last = 0;
  int step = 1, places = 1;
  bool matches(const Op& op) const {
    return op.kind == like.kind && op.stage == like.stage && op.loss == like.loss &&
           like.micro_batch <= op.micro_batch && op.micro_batch <= last;
  }
};

void shift(std::vector<Op>& ops, const Move& move, int in_flight) {
  const int size = static_cast<int>(ops.size());
  // Against the direction of the move, so that moved ops do not meet.
  for (int i = 0; i < size; ++i) {
    int at = move.step > 0 ? size - 1 - i : i;
    if (!move.matches(ops[at])) continue;
    for (int place = 0; place < move.places; ++place) {
      const int next = at + move.step;
      if (next < 0 || next >= size) break;
      const auto [first, second] = std::minmax(at, next);
      if (bound(ops[first], ops[second], in_flight)) break;
      std::swap(ops[at], ops[next]);
      at = next;
    }
  }
}

/// Returns the stages of a rank, in order.
std::vector<int> stages_of(const std::vector<Op>& ops) {
  std::vector<int> stages;
  for (const Op& op : ops) {
    const auto place = std::lower_bound(stages.begin(), stages.end(), op.stage);
    if (place == stages.end() || *place != op.stage) stages.insert(place, op.stage);
  }
  return stages;
}

}  // namespace

void move_ops(std::vector<std::vector<Op>>& order, int in_flight, Random& random) {
  const int ranks = static_cast<int>(order.size());
  const int first = random.integer(0, ranks - 1);
  const int last = random.integer(0, 1) == 0 ? first : random.integer(first, ranks - 1);
  const int size = static_cast<int>(order[first].size());
  const Op like = order[first][random.integer(0, size - 1)];
  const int most = order[first].back().micro_batch;
  Move move{.like = like,
            .last = random.integer(like.micro_batch, std::max(like.micro_batch, most))};
  if (random.integer(0, 2) == 0) move.last = like.micro_batch;
  move.step = random.integer(0, 1) == 0 ? 1 : -1;
  move.places = random.integer(1, kFarthest);
  const std::vector<int> stages = stages_of(order[first]);
  const auto turn = std::lower_bound(stages.begin(), stages.end(), like.stage) - stages.begin();
  for (int rank = first; rank <= last; ++rank) {
    const std::vector<int> there = stages_of(order[rank]);
    if (turn >= static_cast<std::ptrdiff_t>(there.size())) continue;
    move.like.stage = there[turn];
    if (like.loss == like.stage) move.like.loss = there[turn];
    shift(order[rank], move, in_flight);
  }
}

}  // namespace interlock
