// Times of modules as stages, for one micro-batch, by which models are cut.
// SPDX-License-Identifier: Apache-2.0
//
// Example: three stages of three modules, each 1 ms forward, 1 ms for the gradient of its input and
// 1 ms for those of its weights; heads of 2 ms; each loss trains two stages. The first stage is
// busy 9 ms for a micro-batch. Its loop is 3 + 3 ms up, a head of 2 ms, and 3 + 3 + 3 ms down: 17.
#pragma once

#include <vector>

#include "sim/plan/partition.h"
#include "sim/plan/stage_cost.h"

namespace interlock {

/// Returns the busy time of modules [first, last) as `stage`, everything it executes included; the
/// update counts one `update_every`-th.
StageTime busy_time(const std::vector<StageCost>& modules, const Strategy& strategy,
                    const std::vector<StageRole>& roles, int update_every);

/// Returns true if stages are trained by the losses of others, but not by the network's alone:
/// N-wise, chunked and overlapping ones.
bool wait_in_loops(const Strategy& strategy);

struct LoopPolicy {
  int update_every = 1;
  bool split_backward = true;  // input gradients leave before weight gradients are made
};

/// Returns the loops of stages whose gradients come from the losses of others, without messages: up
/// through the forwards to that loss, its head, down through the gradients of inputs, and the
/// stage's own weights. Where only some micro-batches have gradients that cross boundaries, the
/// mean. Empty where none wait_in_loops(). REQUIRES: each gradient travels by itself.
/// Source: Gomez et al., Interlocking Backpropagation, JMLR 23(171), 2022: equal stages take
/// N forwards, a head, N - 1 input gradients and a backward.
StageLoops stage_loops(const std::vector<StageCost>& modules, const Strategy& strategy,
                       const std::vector<StageRole>& roles, const LoopPolicy& policy);

}  // namespace interlock
