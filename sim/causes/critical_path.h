// Critical path: the chain of ops and messages that a stretch of a run lasted as long as.
// SPDX-License-Identifier: Apache-2.0
//
// Example: two stages of F = 1 s, B = 2 s, two micro-batches under 1F1B, messages of 0.5 s. The
// step of 10 s lasts as long as F0 of rank 0 (0 to 1 s), its message (1 to 1.5), F0, B0, F1 and B1
// of rank 1 (1.5 to 7.5), the message of the last gradient (7.5 to 8) and B1 of rank 0 (8 to 10).
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

/// Returns the path that leads to the last op, message or exchange that ends by `end`, back to
/// `begin`: parts without gaps, in order of time. `causes` are those of `log`. Empty if nothing
/// ends in between.
std::vector<PathPart> critical_path(const TraceLog& log, const Causes& causes, Seconds begin,
                                    Seconds end);

}  // namespace interlock
