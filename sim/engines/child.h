// Running an engine in a child process, because SimGrid can run once in a process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/program/trace.h"

namespace interlock {

/// Runs `engine` in a forked child and delivers its trace to `sink` here, in order.
/// Throws: Error (with its mistakes), Unavailable or std::bad_alloc that the engine threw,
/// std::logic_error with the words of anything else; Unavailable if there is no child, or if it was
/// killed; std::bad_alloc if its memory ran out; std::runtime_error if it died otherwise.
RunSummary run_in_child(const Program& program, const TraceSink& sink,
                        RunSummary (*engine)(const Program&, const TraceSink&));

}  // namespace interlock
