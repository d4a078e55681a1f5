// Explanation: why a step takes as long as it does, device by device and along its critical path.
// SPDX-License-Identifier: Apache-2.0
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
