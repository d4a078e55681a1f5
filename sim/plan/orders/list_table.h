// ListTable: what the list scheduler knows of each op of each stage, and of each rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/orders/list_order.h"

namespace interlock {

/// An op of a stage; it takes micro-batches in turn.
struct ListSlot {
  /// Must come after the end of `slot`, `shift` micro-batches before, by `delay`.
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
