// KnownOps: what ops were lowered to, for others that differ in their micro-batch alone.
// SPDX-License-Identifier: Apache-2.0
//
// A schedule of a long warm-up has thousands of ops, and few that differ in more than that. Where
// the cost of an op does not depend on its micro-batch, nor on the ops around it, the instructions
// of a second one are those of the first, for another micro-batch.
//
// Example: 1F0 of interleaved 1F1B is lowered to Receive (0), Allocate (0), F (0), Send (0). 1F5 is
// then Receive (5), Allocate (5), F (5), Send (5), of the same channels, buffer and op.
#pragma once

#include <optional>
#include <vector>

#include "sim/lower/lower.h"

namespace interlock {

class KnownOps {
 public:
  KnownOps(const LowerInputs& inputs, Program& program);

  /// Appends what an op like `op` was lowered to; if there was none, what `lower` appends. `pair`:
  /// the op that it overlaps, or null.
  template <class Lower>
  void append(const Op& op, const Op* pair, const Lower& lower) {
    if (!repeats_) return lower();
    if (const Lowered* const like = find(op, pair)) return repeat(*like, op.micro_batch);
    const auto first = static_cast<int>(program_.instructions.size());
    lower();
    note(op, pair, first);
  }

 private:
  /// Ops as they are for micro-batch 0, and the instructions that they became.
  struct Lowered {
    Op op;
    std::optional<Op> pair;
    int first = 0, count = 0, micro_batch = 0;
  };
  const Lowered* find(const Op& op, const Op* pair) const;
  void repeat(const Lowered& like, int micro_batch);
  void note(const Op& op, const Op* pair, int first);

  Program& program_;
  bool repeats_;
  std::vector<std::vector<Lowered>> lowered_;  // by stage
};

}  // namespace interlock
