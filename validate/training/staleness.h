// Staleness: how many updates the weights of forwards were behind.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "sim/program/program.h"
#include "sim/program/trace.h"

namespace interlock {

/// Returns how many micro-batches had each staleness: the updates that a stage made between the
/// forward of a micro-batch and the update that used its gradients, the most over stages. Counts
/// those whose updates are in `log`, which a run of `program` left.
std::map<int, std::int64_t> staleness_of(const Program& program, const TraceLog& log);

}  // namespace interlock
