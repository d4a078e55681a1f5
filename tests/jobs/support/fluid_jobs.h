// Fluid jobs: rings and pipelines that share links, simulated from what they are.
// SPDX-License-Identifier: Apache-2.0
//
// An oracle of joined programs. It knows neither programs nor engines: a job is written as what its
// devices do in turn, links are shared as progressive filling (tests/validate/support) says, and
// whenever a flow begins all ends are worked out anew.
#pragma once

#include <vector>

namespace interlock {

/// A job of devices in a ring, or in a line. Seconds and bytes.
struct FluidJob {
  bool ring = true;
  std::vector<int> nodes;  // of its devices; each pair of neighbours lies on two nodes
  double compute = 1;      // of a device in a step; in a line: for each micro-batch
  double bytes = 0;        // from a device to the next in a step; in a line: of a micro-batch
  int micro_batches = 1;   // in a line
  int steps = 1;
};

/// Returns when each step of each job ends, on nodes with a link up and a link down of `bandwidth`
/// each. In a ring all devices compute, then all of them send to the next at once, and the step
/// ends with the last of that. In a line a device computes micro-batches in order, each when it has
/// come, and sends them on, one after the other; a step ends with its last micro-batch on the last
/// device.
std::vector<std::vector<double>> ends_of_steps(const std::vector<FluidJob>& jobs, double bandwidth);

}  // namespace interlock
