// Readiness: when each op of a trace could have started, had its rank been free.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/program/trace.h"

namespace interlock {

/// One executed op of a stream.
struct ReadyOp {
  OpInfo op;
  int micro_batch = 0;
  Seconds ready;  // all instructions before it in its stream were done
  Seconds start, end;
};

/// The ops of every stream in order, with times from `log` and readiness worked out again from the
/// instructions: streams are walked, with the ends of ops and arrivals of messages taken from the
/// trace, as often as anything new can be said.
/// Shapes: result (streams, ops). REQUIRES: `log` is a whole run of `program`, in engine order.
std::vector<std::vector<ReadyOp>> readiness(const Program& program, const TraceLog& log);

}  // namespace interlock
