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
// device, 4 MiB go to the host and come back.
#pragma once

#include "sim/plan/data_parallel.h"

namespace interlock {

/// Shares, from 0 to 1.
struct Offload {
  double activations = 0;
  double optimizer = 0;

  bool any() const { return activations > 0 || optimizer > 0; }
};

/// Leaves in `stage` what stays on its device, and notes what its host has.
/// REQUIRES: apply_zero() was applied to it.
void apply_offload(const Offload& offload, const DataParallel& policy, const Mesh& mesh,
                   StageCost& stage);

}  // namespace interlock
