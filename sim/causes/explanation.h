// Explanation: why a step takes as long as it does, device by device and along its critical path.
// SPDX-License-Identifier: Apache-2.0
//
// Example: two devices, forwards of 1 ms, backwards of 2 ms, messages of 1 ms, two micro-batches
// under 1F1B. A step takes 11 ms. Its path has 3 ms of F, 6 ms of B and 2 ms of messages. Device 0
// waits 3 ms for gradients to be made, and 2 ms for messages on their way.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "sim/causes/bubbles.h"
#include "sim/causes/critical_path.h"

namespace interlock {

/// Seconds of a critical path by what it consists of.
struct PathUse {
  std::array<double, kOpKinds> ops{};
  double messages = 0, collectives = 0;
  double unknown = 0;  // between ops of measured runs
};

/// Means over the steps of a window.
struct Explanation {
  std::vector<Bubbles> devices;  // by rank
  PathUse path;
};

/// Explains a step of `window`, which has `steps`. Nothing if `log` has no causes, see find_causes.
std::optional<Explanation> explain(const Program& program, const TraceLog& log,
                                   const TimeWindow& window, int steps);

}  // namespace interlock
