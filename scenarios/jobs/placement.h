// Placement: which devices of a cluster each of several jobs has.
// SPDX-License-Identifier: Apache-2.0
//
// Jobs that say where they lie come first, then packed ones take the first free devices, job by
// job, and last whole free nodes are dealt to spread ones, one to each in turn.
//
// Example: four nodes of eight devices, jobs a and b of 16. Packed, a has nodes 0 and 1, b has 2
// and 3; spread, a has 0 and 2, b has 1 and 3; with {"nodes": [0, 1, 2, 3]} a has the first four
// devices of each node, and a packed b the other four.
#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"
#include "hardware/networks/cluster.h"

namespace interlock {

/// "placement" of a job.
struct PlacementRule {
  enum class Kind { Packed, Spread, Nodes, Devices };
  Kind kind = Kind::Packed;
  std::vector<int> numbers = {};  // of nodes, which have as many of its devices each; of devices
};

/// A job that is to be placed.
struct UnplacedJob {
  std::string name;
  int devices = 1;
  PlacementRule rule;
  JsonNode node;  // of its placement, or of the job
};

/// Returns the devices of each job, in the order of its mesh; reports what does not fit.
std::vector<std::vector<int>> place_jobs(const Cluster& cluster,
                                         const std::vector<UnplacedJob>& jobs,
                                         Diagnostics& diagnostics);

}  // namespace interlock
