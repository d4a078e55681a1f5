// Critical path: the chain of ops and messages that a stretch of a run lasted as long as.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/causes/causes.h"

namespace interlock {

/// A stretch of the path. Begin: nothing that the log holds; a measured run spends such time
/// between its ops.
struct PathPart {
  TraceNode node;
  Seconds begin, end;
};

/// Returns the path that leads to the last op that ends by `end`, back to `begin`: parts without
/// gaps, in order of time. `causes` are those of `log`. Empty if no op ends in between.
std::vector<PathPart> critical_path(const TraceLog& log, const Causes& causes, Seconds begin,
                                    Seconds end);

}  // namespace interlock
