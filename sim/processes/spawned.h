// Running an engine in another program, for a host whose process must not be forked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/program/trace.h"

namespace interlock {

/// Starts the program at `path`, which calls serve_program(), has it run `program`, and delivers
/// the trace to `sink` here, in order. No handler of pthread_atfork() is called, no descriptor and
/// neither masks nor dispositions of signals pass on, and nothing of it is left.
/// Throws: as EngineProcess::take_trace() (trace_pipe.h); Unavailable if it cannot be started.
RunSummary run_in_program(const std::string& path, const Program& program, const TraceSink& sink);

/// Reads what run_in_program() asks for from standard input, runs `engine`, and answers on standard
/// output; then ends this process. Returns where nothing is asked.
void serve_program(RunSummary (*engine)(const Program&, const TraceSink&));

}  // namespace interlock
