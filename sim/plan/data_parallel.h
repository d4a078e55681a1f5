// DataParallel: how devices that hold equal weights keep them equal.
// SPDX-License-Identifier: Apache-2.0
//
// ZeRO stage 1 divides the optimiser's states among the devices of a shard, stage 2 gradients too,
// stage 3 (FSDP) weights too. Where a shard is smaller than the group (hybrid sharding), the shards
// add up their gradients among each other. Source: ZeRO, arXiv 1910.02054; PyTorch FSDP, arXiv
// 2304.11277.
//
// Gradients are reduced once for each update, or after every micro-batch. Example: 4 devices, ZeRO
// 2, gradients of 8 GiB, 16 micro-batches. Once: each device adds up 8 GiB and sends them once.
// After every micro-batch: each keeps 2 GiB and two buckets, and sends 16 times as much.
#pragma once

#include <vector>

#include "base/exchange.h"
#include "base/framework.h"
#include "sim/plan/mesh.h"
#include "sim/plan/stage_cost.h"

namespace interlock {

struct DataParallel {
  int zero_stage = 0;
  GradientReduction gradient_reduction = GradientReduction::Step;
  bool overlap_gradients = true;  // they leave in buckets during the last backward of a step
  bool overlap_weights = false;   // ZeRO 1 and 2: gathered while the next step begins
  double gradient_density = 1;    // share of gradients that are exchanged
  Bytes bucket = Bytes(25.0 * (1 << 20));  // of gradients
  int prefetch = 1;                        // ZeRO 3: modules whose weights are gathered ahead
};

/// Returns the part of `whole` bytes of a state that a device has, where it is divided;
/// `of_experts` of them belong to experts.
Bytes own_part(const Mesh& mesh, Bytes whole, Bytes of_experts);
/// Gives `stage` the states of a shard, and the update of them. `backwards`: those whose weight
/// gradients one update of the stage adds up.
void apply_zero(const DataParallel& policy, const Mesh& mesh, int backwards, StageCost& stage);

/// Returns the exchanges once gradients are complete; the weights' own bytes are those before
/// sharding.
std::vector<Exchange> gradient_exchanges(const DataParallel& policy, const Mesh& mesh,
                                         const StageCost& stage);
/// Returns the exchanges that bring the weights of a stage together again.
std::vector<Exchange> weight_exchanges(const DataParallel& policy, const Mesh& mesh,
                                       const StageCost& stage);

}  // namespace interlock
