// StepLimits: what a step is as long as, each second once.
// SPDX-License-Identifier: Apache-2.0
//
// Seen from the busiest device: what it computes, and how its idle time divides into transfers and
// the bubble. Which transfers, the critical path says: they take at most what lies on it, and the
// rest of the idle time is waiting for ops of other devices, or for room.
//
// Example: two devices, forwards of 1 ms, backwards of 2 ms, messages of 1 ms, two micro-batches
// under 1F1B. The 11 ms of a step are 6 ms of compute on a device, 3 ms of bubble, and 1 ms on each
// of the links 0->1 and 1->0. Along the path come first 4 ms of backwards on device 1.
#pragma once

#include <string>
#include <vector>

#include "scenarios/simulate/run_scenario.h"

namespace interlock {

/// A part of a step.
struct StepPiece {
  enum class Kind {
    Compute,   // kernels that wait for arithmetic, or whose time was measured
    Memory,    // kernels that wait for the memory of the device
    Launches,  // kernels that wait to be launched, or issued by the host
    Inside,    // exchanges that an op stands still for
    Transfer,  // bytes of messages and collectives on a link
    Latency,   // of messages and collectives
    Bubble,    // no device works for the busiest one, or there is no room for what it made
    Unknown,   // between ops of measured runs
  };
  Kind kind = Kind::Compute;
  int rank = -1;      // of Compute, Memory, Launches and Inside
  std::string where;  // the link; of Inside and of collectives the group that exchanges
  double seconds = 0;
};

/// A stretch of the critical path: equal ones together.
struct PathShare {
  enum class Kind { Op, Message, Collective, Unknown };
  Kind kind = Kind::Op;
  OpKind op = OpKind::F;
  int rank = -1;                    // of an op
  Cargo cargo = Cargo::Activation;  // of a message
  std::string link;                 // of a message: the narrowest on its way
  CollectiveKind collective = CollectiveKind::AllReduce;
  MeshAxis axis = MeshAxis::Data;  // of a collective
  double seconds = 0;
};

struct StepLimits {
  int rank = 0;                  // the busiest device
  std::vector<int> as_busy;      // all that are so to within a hundredth of a step, by rank
  std::vector<StepPiece> parts;  // longest first; they add up to a step
  std::vector<PathShare> path;   // likewise; empty where the run is not known span by span
};

/// Divides the time of a mean step of the measured window. Without the causes of the run (too long,
/// varied, or with replay) there is no path, and exposed communication stands for transfers.
StepLimits step_limits(const ScenarioResult& result);

}  // namespace interlock
