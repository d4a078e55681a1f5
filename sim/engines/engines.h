// The engines: functions that run a Program and feed a TraceSink.
// SPDX-License-Identifier: Apache-2.0
//
// native   knows no SimGrid. Programs whose order is fixed and that share no links are swept
// (longest
//          path); all others run in time order, with contention by FairShare.
// simgrid  SimGrid keeps the clock and solves contention: the engine of record where links are
//          shared. Lives in a module that is opened when it is first asked for. One run per
//          process: use run_simgrid_apart where more may follow.
#pragma once

#include "sim/program/trace.h"

namespace interlock {

enum class EngineKind { Auto, SimGrid, Native };

/// Runs the longest path over the fixed order of `program`. Throws: Error on deadlock, saying who
/// waits for what. REQUIRES: !chooses_order(program) && !shares_links(program).
RunSummary run_longest_path(const Program& program, const TraceSink& sink);

/// Runs any program in order of time, without SimGrid. Throws: Error on deadlock.
RunSummary run_event_loop(const Program& program, const TraceSink& sink);

/// Runs by the longest path where the order is fixed and no link is shared, else by the event loop.
/// Throws: Error on deadlock.
RunSummary run_native(const Program& program, const TraceSink& sink);

/// Opens the SimGrid module, so that children made later have it. Throws: Unavailable if
/// that fails, Error if this build has none.
void load_simgrid();

/// Runs on SimGrid. Throws: Error on deadlock; Unavailable if the module cannot be opened.
/// REQUIRES: the first SimGrid run of this process.
RunSummary run_simgrid(const Program& program, const TraceSink& sink);

/// Runs on SimGrid in a process of its own, whose trace is delivered here: a forked child of a
/// program (forked_simgrid.cc), a program of its own for libinterlock
/// (library/spawned_simgrid.cc), which takes as much longer as SimGrid takes to load.
/// Throws: as EngineProcess::take_trace() (sim/processes/trace_pipe.h); Unavailable if there is no
/// process. REQUIRES: this build has SimGrid.
RunSummary run_simgrid_apart(const Program& program, const TraceSink& sink);

/// Returns the engine that `kind` means for `program`: Auto is Native where no link is shared, and
/// where this build has no SimGrid.
EngineKind choose_engine(EngineKind kind, const Program& program);
/// Returns the engine for one run of many: Auto is Native, which needs no process for each.
inline EngineKind engine_of_many(EngineKind kind) {
  return kind == EngineKind::Auto ? EngineKind::Native : kind;
}

/// Runs `program`, on SimGrid by run_simgrid_apart(). Throws: as that; Error if this build has no
/// SimGrid and `kind` asks for it.
RunSummary run_program(const Program& program, EngineKind kind, const TraceSink& sink);

/// Returns `program` with the order that a run of it realised: ranks and wires repeat it, whatever
/// the times. The longest path of a frozen program that shares no links has the times of that run.
Program freeze(const Program& program, EngineKind kind);
/// Freezes the order of a run that an engine or an executor logged. REQUIRES: all of it was logged.
Program freeze(const Program& program, const TraceLog& log);

}  // namespace interlock
