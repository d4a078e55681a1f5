// Message order: where the sends and receives of each rank stand among its ops.
// SPDX-License-Identifier: Apache-2.0
//
// A send stands behind the op that makes its message. A receive stands late, before the op that
// reads it, as Megatron-LM's 1F1B has it; or early, as PyTorch's runtime of pipeline schedules puts
// it: ranks take turns, each one op, if what it reads is made; whatever an op makes is at once
// noted as a receive at the other rank, behind the ops that this one has taken so far.
//
// Example: 1F1B of two ranks, two micro-batches.
//   early  rank 0: F0, send F0, F1, send F1, receive B0, B0, receive B1, B1
//          rank 1: receive F0, F0, receive F1, B0, send B0, F1, B1, send B1
//   late   rank 0: F0, send F0, F1, send F1, receive B0, B0, receive B1, B1
//          rank 1: receive F0, F0, B0, send B0, receive F1, F1, B1, send B1
#pragma once

#include <vector>

#include "sim/plan/orders/schedule_check.h"

namespace interlock {

/// The next thing that a rank does: its next `ops` ops, two of a pair; or, if 0, one end of the
/// message that carries what `made_by` makes.
struct RankTurn {
  int ops = 0;
  bool sends = false;
  int other_rank = 0;  // at the other end
  Op made_by;
};

enum class ReceivePlace { Early, Late };

/// Returns the turns of each rank. REQUIRES: no find_mistake(order).
std::vector<std::vector<RankTurn>> turns_with_messages(const StepOrder& order, ReceivePlace place);

}  // namespace interlock
