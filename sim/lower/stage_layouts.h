// StageLayouts: pipeline ranks that divide their stages otherwise than their neighbours do.
// SPDX-License-Identifier: Apache-2.0
//
// Every pipeline rank has as many devices, but its own tensor and data degrees: tensor devices
// divide the work, data devices the samples of a micro-batch. Between neighbours a tensor has to be
// laid out anew (hardware/collectives/resharding). One rank is simulated for all devices of a
// pipeline rank, which is as late as the last of them; what they send over links is simulated
// device by device.
//
// Example: ranks of four devices, rank 0 with tensor 4, rank 1 with tensor 2 x data 2. Of an output
// of 8 MiB that tensor devices hold copies of, each device of rank 0 holds 8 MiB, each of rank 1
// holds 4 MiB.
#pragma once

#include <vector>

#include "hardware/collectives/resharding.h"
#include "sim/plan/mesh.h"

namespace interlock {

struct StageLayouts {
  /// By pipeline rank, with equal numbers of devices. Empty: all ranks divide their stages alike.
  std::vector<Mesh> meshes;
  std::vector<Bytes> whole_outputs;  // by stage: of all its devices, copies counted once
  std::vector<Bytes> outputs;        // by stage: what one of its devices holds of that
  std::vector<Bytes> inputs;         // by stage: what one of them holds of the output before it
  ReshardingChoice resharding;
  bool empty() const { return meshes.empty(); }
};

/// Places a tensor of `whole` bytes on the devices of pipeline rank `rank`, `held` bytes on each:
/// cut by data, and by tensor devices unless these hold copies.
TensorPlacement placement_of(const Mesh& mesh, int rank, Bytes whole, Bytes held);

/// Tensors that cross the boundary above stage `below`.
struct Crossing {
  int below = 0;
  bool upwards = true;
  double tensors = 1;
};
Resharding plan_crossing(const Cluster& cluster, const StageLayouts& layouts,
                         const std::vector<int>& rank_of_stage, const Crossing& crossing);

/// Plans one collective for all groups of a pipeline rank at once.
CollectivePlan plan_of_all_groups(const Cluster& cluster, const Mesh& mesh, int rank,
                                  const Exchange& exchange);

}  // namespace interlock
