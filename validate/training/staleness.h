// Staleness: how many updates the weights of forwards were behind.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "sim/program/program.h"
#include "sim/program/trace.h"

namespace interlock {

/// For each number of updates that a stage made between a micro-batch's forward and the update that
/// used its gradients, the most over stages: how many micro-batches had it. Of those whose
/// updates are in `log`, which a run of `program` left.
std::map<int, std::int64_t> staleness_of(const Program& program, const TraceLog& log);

}  // namespace interlock
