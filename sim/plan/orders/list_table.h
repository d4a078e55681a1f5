// ListTable: what the list scheduler knows of each op of each stage, and of each rank.
// SPDX-License-Identifier: Apache-2.0
//
// Example: two stages on two ranks, each with an F that takes 4 MiB and a B; activations of 1 MiB.
// Slots 0 and 1 are F and B of stage 0, slots 2 and 3 those of stage 1. Slot 2 needs slot 0, slot 3
// needs slot 2, and slot 1 needs slots 0 and 3, all for the same micro-batch; slot 0 sends to rank
// 1. `forward` is {0, 2}, `weights` {1, 3}; for stage 1 `growth` is 5 MiB and `message` 1 MiB.
#pragma once

#include <vector>

#include "sim/plan/orders/list_order.h"

namespace interlock {

/// An op of a stage; it takes micro-batches in turn.
struct ListSlot {
  /// The op starts at the earliest `delay` after `slot` ended, `shift` micro-batches before.
  struct Need {
    int slot = 0, shift = 0;
    double delay = 0;
    bool update = false;  // the last update due there
  };

  int stage = 0, rank = 0;
  const ListOp* op = nullptr;
  std::vector<Need> needs;
  int to_rank = -1;      // of its message; -1: none leaves the rank
  bool filling = false;  // no other stage waits for it
  int next = 0;          // micro-batch
  std::vector<double> ends;
};

struct ListRank {
  std::vector<int> slots, stages;
  std::vector<int> neighbours;  // ranks that an op of this one may concern, itself included
  double limit = kInfinity;
  double transient = 0;  // most bytes that an op takes beyond what it leaves
  // The state of the simulation:
  double free = 0, used = 0;
  int held = 0;    // weight gradients that could be made
  int chosen = 0;  // slot
  double start = 0;
};

struct ListTable {
  std::vector<ListSlot> slots;
  std::vector<ListRank> ranks;
  std::vector<int> forward,
      weights;                  // (stages) slots: the first, and the last that needs the stash
  std::vector<double> growth;   // (stages) bytes that a forward leaves, its message's included
  std::vector<double> message;  // (stages) of these: what arrives from another rank
};

/// REQUIRES: `inputs` outlives the table.
ListTable make_list_table(const ListInputs& inputs);

inline bool makes_input_gradient(OpKind kind) { return kind == OpKind::I || kind == OpKind::B; }

}  // namespace interlock
