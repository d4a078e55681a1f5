// SlowDevices: devices that compute slower, or faster, than those of the cluster should.
// SPDX-License-Identifier: Apache-2.0
//
// Example: {Rank, 1, 1.5} of two pipeline ranks has the slowdowns {1, 1.5}.
#pragma once

#include <string>
#include <vector>

#include "sim/plan/mesh.h"

namespace interlock {

struct LowerInputs;

/// One device, or all of a pipeline rank, whose kernels take `slowdown` times as long.
struct SlowDevices {
  enum class Of { Rank, Device };
  Of of = Of::Rank;
  int number = 0;
  double slowdown = 1;
};

/// Returns, by simulated rank, how much slower the slowest of its devices computes.
std::vector<double> slowdowns(const std::vector<SlowDevices>& slow, const Mesh& mesh,
                              const Unfolded& unfolded);
/// Returns why ranks do not do what others do for which they stand; empty if they do.
std::string slow_folding_problem(const std::vector<SlowDevices>& slow, const Mesh& mesh,
                                 const Unfolded& unfolded);

/// Has the stages of slow ranks cost as much more. REQUIRES: `inputs` is unfolded.
void slow_down(LowerInputs& inputs);

}  // namespace interlock
