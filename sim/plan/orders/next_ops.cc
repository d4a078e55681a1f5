// Ops after an op of a loop.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/orders/next_ops.h"

namespace interlock {

namespace {

constexpr std::size_t kFew = 4;  // a forward run again, a head, and what comes after

bool begins_with_backward(const Run& run) {
  return !run.ops.empty() && (run.ops[0].kind == OpKind::I || run.ops[0].kind == OpKind::B);
}

void take(const std::vector<Op>& from, std::size_t first, int later, std::vector<Op>& ops) {
  for (std::size_t i = first; i < from.size() && ops.size() < kFew; ++i) {
    ops.push_back(from[i]);
    ops.back().micro_batch += later;
  }
}

/// Returns true if the loop over runs begins or ends behind run `run`.
bool ends_part(const Sequence& sequence, std::size_t run) {
  const std::size_t lead = sequence.lead, tail = sequence.runs.size() - sequence.tail;
  return run + 1 == sequence.runs.size() ||
         (sequence.repeats > 1 && (run + 1 == lead || run + 1 == tail));
}

}  // namespace

void part_turns_at_backwards(Sequence& sequence) {
  for (std::size_t r = 0; r < sequence.runs.size(); ++r) {
    const Run& run = sequence.runs[r];
    if (run.repeats < 2) continue;
    const bool next = r + 1 < sequence.runs.size() && begins_with_backward(sequence.runs[r + 1]);
    if (begins_with_backward(run)) {
      split_turns(sequence, r, 1);
      ++r;
    }
    const Run& rest = sequence.runs[r];
    if ((next || begins_with_backward(rest)) && rest.repeats > 1) {
      split_turns(sequence, r, rest.repeats - 1);
      ++r;
    }
  }
}

std::vector<Op> ops_after(const Sequence& sequence, std::size_t run, std::size_t index) {
  const Run& own = sequence.runs[run];
  std::vector<Op> ops;
  take(own.ops, index + 1, 0, ops);
  if (own.repeats > 1) {
    take(own.ops, 0, own.stride, ops);
    return ops;
  }
  while (ops.size() < kFew && !ends_part(sequence, run)) {
    const Run& next = sequence.runs[++run];
    if (next.repeats > 0) take(next.ops, 0, 0, ops);
    if (next.repeats > 1) break;
  }
  return ops;
}

}  // namespace interlock
