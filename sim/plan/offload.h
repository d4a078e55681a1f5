// Offload: what waits in the memory of a device's host, and what that costs on the way there.
// SPDX-License-Identifier: Apache-2.0
//
// Of the stash, a share leaves for the host when its forward is done and comes back before its
// first backward, or layer by layer. Of the optimiser's states, a share lives in the host's memory
// and is updated there: gradients go to the host, new weights come back. The host is taken to
// update as fast as its link brings gradients, as ZeRO-Offload's does (arXiv 2101.06840, recalled:
// about 0.1 s a billion parameters, whose 16-bit gradients take as long at 20 GB/s).
//
// Example: {activations 0.5} of a stage that keeps 8 MiB of a micro-batch: 4 MiB stay on the
// device, 4 MiB go to the host and come back. By lifetime, of two such stages of a rank, the one
// whose stash lives longer sends all of it, and the other one nothing.
#pragma once

#include <vector>

#include "sim/plan/data_parallel.h"
#include "sim/plan/schedules/schedule.h"

namespace interlock {

/// Shares, from 0 to 1.
struct Offload {
  double activations = 0;
  double optimizer = 0;
  bool by_lifetime = false;  // of a rank's stages those leave whose stash lives longest

  bool any() const { return activations > 0 || optimizer > 0; }
};

/// Leaves in `stage` what stays on its device, and notes what its host has. `layers`: as for
/// apply_zero(). REQUIRES: apply_zero() was applied to it.
void apply_offload(const Offload& offload, const DataParallel& policy,
                   const std::vector<Mesh>& layers, StageCost& stage);

/// Has the stash leave of those stages of each rank that `schedule` keeps it longest of, by the
/// time of the ops between a forward and its backward: all of theirs, until that makes `share` of
/// what the rank keeps of a micro-batch. Ranks that choose their order send as much of every stage.
/// Source: PipeOffload, arXiv 2503.01328. REQUIRES: apply_offload() was applied to all `stages`:
/// those of the schedule, for each kind of machine.
void offload_by_lifetime(double share, const Schedule& schedule, std::vector<StageCost>& stages);

}  // namespace interlock
