// A realised run: its trace in an order that does not depend on the engine, or its deadlock.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "sim/engines/engines.h"

namespace interlock {

using Engine = RunSummary (*)(const Program&, const TraceSink&);

struct Realised {
  TraceLog log;  // each list sorted
  RunSummary summary;
  std::string deadlock;  // what the engine said instead, if it did
};

Realised realise(const Program& program, Engine engine);
/// A run that was logged.
Realised realised(TraceLog log, RunSummary summary);
/// A SimGrid run, in a child.
Realised realise_simgrid(const Program& program);

/// Returns what differs between two runs, in words; empty if every op, message, collective and
/// change of memory has the same times, to `tolerance` of the length of the run, and both or
/// neither deadlock.
std::string difference(const Realised& a, const Realised& b, double tolerance = 0);

}  // namespace interlock
