// Moving ops about.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/order_moves.h"

#include <algorithm>

namespace interlock {

namespace {

constexpr int kFarthest = 8;  // places

/// Whether two ops of a rank must stay in the order that they are in: of one micro-batch and stage,
/// of one kind and stage (messages keep their order), and everything with an update.
bool bound(const Op& a, const Op& b) {
  if (a.stage != b.stage) return false;
  const auto updates = [](const Op& op) { return op.kind == OpKind::U; };
  if (updates(a) || updates(b)) return true;
  return a.micro_batch == b.micro_batch || (a.kind == b.kind && a.loss == b.loss);
}

}  // namespace

void move_op(std::vector<std::vector<Op>>& order, Random& random) {
  const int rank = random.integer(0, static_cast<int>(order.size()) - 1);
  std::vector<Op>& ops = order[rank];
  const int last = static_cast<int>(ops.size()) - 1;
  int at = random.integer(0, last);
  const int step = random.integer(0, 1) == 0 ? 1 : -1;
  for (int places = random.integer(1, kFarthest); places > 0; --places) {
    const int next = at + step;
    if (next < 0 || next > last || bound(ops[at], ops[next])) break;
    std::swap(ops[at], ops[next]);
    at = next;
  }
}

}  // namespace interlock
