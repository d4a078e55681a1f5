// Running an engine in a child process, because SimGrid can run once in a process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/program/trace.h"

namespace interlock {

/// Runs `engine` in a forked child and delivers its trace to `sink` here, in order.
/// Throws: as EngineProcess::take_trace() (trace_pipe.h); Unavailable if there is no child.
RunSummary run_in_child(const Program& program, const TraceSink& sink,
                        RunSummary (*engine)(const Program&, const TraceSink&));

}  // namespace interlock
