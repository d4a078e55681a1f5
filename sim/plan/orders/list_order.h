// List orders: an order of ops for every rank, found by letting free ranks take what is ready.
// SPDX-License-Identifier: Apache-2.0
//
// Micro-batches are equal, so an op of a stage takes them in turn, and the order is decided by what
// a rank prefers when several of its ops are ready. Weight gradients, and input gradients that no
// stage waits for, fill what idle time they can. Memory is what ops take and give back: nothing
// begins that would leave too little for the oldest micro-batch of a rank to finish, so a limit
// that holds one micro-batch is never a deadlock.
// Source of the principle: Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241,
// section 3.
//
// Example: two stages on two ranks, F, I and W of one unit each, three micro-batches, no limits:
// rank 0 runs F0 F1 F2 I0 W0 I1 W1 I2 W2, rank 1 F0 I0 F1 I1 F2 I2 W0 W1 W2, as the weight
// gradients fill the time in which it waits for nothing.
#pragma once

#include <optional>
#include <vector>

#include "sim/plan/schedules/catalogue.h"

namespace interlock {

/// One op that a stage runs for each micro-batch (an update: for each `update_every`).
struct ListOp {
  OpKind kind = OpKind::F;
  int loss = 0;
  double time = 1;
  double take = 0, give = 0;  // bytes on its rank: from its start, and at its end
  double sent = 0;            // bytes that its message takes on another rank
  double delay = 0;           // until its message has arrived
};

struct ListInputs {
  int micro_batches = 1;  // to order
  int update_every = 1;
  int in_flight = 0;  // as SchedulePolicy::in_flight; 0: no limit
  std::vector<int> rank_of_stage;
  std::vector<StageRole> roles;
  std::vector<std::vector<ListOp>> ops;  // (stages), as one micro-batch would go through
  std::vector<double> memory;            // (ranks) bytes that ops may take; empty: no limit
};

/// The preferences of ranks.
struct ListRules {
  bool forward_first = false;  // else a backward that another stage waits for comes first
  std::vector<int> ahead;      // (stages) forwards ahead of backwards at most; empty: no limit
  std::vector<int> held;       // (ranks) weight gradients held back at most; empty: no limit
  // Share of its time that an op is put off for a better one that is known to come:
  double patience = 0;        // filling ops
  double first_patience = 0;  // forwards, or backwards where forwards come first
};

/// Returns the order of every rank, or nothing if the limits let nothing begin.
std::optional<std::vector<std::vector<Op>>> list_order(const ListInputs& inputs,
                                                       const ListRules& rules);

}  // namespace interlock
