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
//
// Under outer steps (DiLoCo) the devices fall into workers, each with a copy of the weights of its
// own, that exchange nothing in a step. A worker is a shard of the mesh: Shard joins the devices of
// one, Replica those that have the same part in each.
// Source: DiLoCo, arXiv 2311.08105; Streaming DiLoCo, arXiv 2501.18512.
#pragma once

#include <optional>
#include <vector>

#include "base/exchange.h"
#include "base/framework.h"
#include "sim/plan/mesh.h"
#include "sim/plan/stage_cost.h"

namespace interlock {

/// Outer steps: every `every` steps workers exchange how far their weights have moved (outer
/// gradients), and all take an outer step of Nesterov momentum. Example: every 100, fragments 4:
/// every 25 steps a quarter of the weights is exchanged.
struct OuterSteps {
  int every = 0;  // steps between two exchanges of the same weights; 0: there are no outer steps
  int fragments = 1;            // of the weights, exchanged one after the other
  int overlap = 0;              // steps that training goes on for before it waits for an exchange
  double network_share = 0;     // of a cycle that exchanges may take; 0: each fragment goes once
  bool compensates = false;     // corrects a fragment that comes late, see docs/parallelism.md
  double element = 4;           // bytes of an outer gradient of one parameter
  double gradient_element = 4;  // bytes of an inner one, by which parameters are counted
  bool now = false;             // what is lowered is the outer step of a fragment itself
  bool any() const { return every > 0; }
  /// Returns the fragments that are on their way at once where a cycle has `exchanges`.
  int on_the_way(int exchanges) const;
};

struct DataParallel {
  int zero_stage = 0;
  GradientReduction gradient_reduction = GradientReduction::Step;
  bool overlap_gradients = true;  // they leave in buckets during the last backward of a step
  bool overlap_weights = false;   // ZeRO 1 and 2: gathered while the next step begins
  double gradient_density = 1;    // share of gradients that are exchanged
  std::optional<Bytes> bucket;    // of gradients that are exchanged together, if it is told
  int prefetch = 1;               // ZeRO 3: modules whose weights are gathered ahead
  OuterSteps outer;

  /// Returns the bytes of gradients that are exchanged together, if it is not all of them: unless
  /// it is told, 25 MiB where gradients leave beside backwards.
  /// Source: torch/nn/parallel/distributed.py (bucket_cap_mb); without overlap Megatron-Core
  /// reduces its buffer at once (megatron/core/distributed/distributed_data_parallel.py).
  std::optional<Bytes> gradient_bucket() const {
    const bool beside = overlap_gradients || gradient_reduction == GradientReduction::MicroBatch;
    return !bucket && beside ? Bytes(25.0 * (1 << 20)) : bucket;
  }
  /// Returns whether a device adds up whole gradients until the end of a step.
  bool keeps_whole_gradients() const {
    return zero_stage < 2 && gradient_reduction == GradientReduction::Step;
  }
};

/// Returns the part of `whole` bytes of a state that a device has, where it is divided;
/// `of_experts` of them belong to experts.
Bytes own_part(const Mesh& mesh, Bytes whole, Bytes of_experts);
/// Returns the trained parameters of `stage` that a device of a worker exchanges, keeps the outer
/// states of, and updates in an outer step of all fragments: devices of equal weights divide them.
/// REQUIRES: policy.outer.any().
double outer_parameters(const DataParallel& policy, const Mesh& mesh, const StageCost& stage);

/// Gives `stage` the states of a shard, and the update of them. `backwards`: those whose weight
/// gradients one update of the stage adds up. `layers`: meshes by layout, see layer_layouts.h.
void apply_zero(const DataParallel& policy, const std::vector<Mesh>& layers, int backwards,
                StageCost& stage);

/// Returns the exchanges once gradients are complete; the weights' own bytes are those before
/// sharding. `mesh` is that of the layout of `stage`, which has no parts.
std::vector<Exchange> gradient_exchanges(const DataParallel& policy, const Mesh& mesh,
                                         const StageCost& stage);
/// Returns the exchanges that bring the weights of such a stage together again.
std::vector<Exchange> weight_exchanges(const DataParallel& policy, const Mesh& mesh,
                                       const StageCost& stage);

}  // namespace interlock
