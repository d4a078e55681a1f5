// A second simulator of one-at-a-time training, small and slow, to compare the engines with.
// SPDX-License-Identifier: Apache-2.0
//
// Written from the definition of the strategies alone; it shares no code with sim/ and neither its
// roles nor its streams. Times are whole ticks, so that ties are ties. A stage works on batch b in
// slot b % in_flight. What a slot does with a batch is a list of steps, done in order:
//   begin, once all updates are done that were due when batch b - in_flight ended;
//   take the activation; F; put it above; H; for each gradient, nearest loss first: take it (unless
//   it is the stage's own), I, put it below; for the last, which trains the weights: B and put, or
//   I, put, W where it must also be put below; U after every update_every batches.
// List form: take the whole list first, put one list after the last op.
// A device that is free runs the ready op that is first in F, H, I, B, W, U, then has the nearer
// loss, then the older batch. A put waits for room. In a rendezvous the message leaves at once, and
// its putter stands for as long as the message will have to wait for its taker, as far as anyone
// can know: until one way (occupancy and latency) before the taker comes to the take, but no less
// than until the taker begins the row of ops that leads to it. A rank of several slots, which
// chooses, knows nothing beforehand: it lets the putter go when it comes to the take.
#pragma once

#include <cstdint>
#include <vector>

namespace interlock {

using Ticks = std::int64_t;

struct ReferenceStage {
  Ticks forward = 1, backward_input = 1, backward_weight = 1, head = 0, update = 0;
  Ticks occupancy = 0;  // of the wire above, by one tensor of the boundary above, either way
};

struct ReferenceCase {
  std::vector<ReferenceStage> stages;
  std::vector<int> rank_of_stage;  // empty: one stage a rank
  int n_wise = 1;                  // as many as stages: global
  std::vector<int> n_of_losses;    // (stages) that each loss reaches; empty: n_wise
  bool list = false;
  bool fused = false;
  bool all_heads = false;
  bool skip_unneeded = false;  // leaves out the input half that no stage below uses
  int depth = 1;               // messages put and not taken; 0: rendezvous, -1: no limit
  int in_flight = 1;
  int update_every = 1;
  Ticks latency = 0;
  int batches = 1;
};

struct ReferenceSpan {
  char op = 'F';
  int stage = 0, batch = 0, loss = 0;  // from 0
  Ticks start = 0, end = 0;
  auto operator<=>(const ReferenceSpan&) const = default;
};

/// Every op, in order of their ends. REQUIRES: update_every divides batches.
std::vector<ReferenceSpan> run_reference(const ReferenceCase& reference);

/// (end of batch `to` - end of batch `from`) / batches between, where a batch ends with its last
/// update: the period, if `from` is past the fill, `to` before the drain (only with several in
/// flight) and what lies between is a multiple of the cycle.
double reference_period(const std::vector<ReferenceSpan>& spans, int from, int to);

}  // namespace interlock
