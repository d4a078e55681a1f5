// The trace of an engine in a process of its own: how it is written there, and taken here.
// SPDX-License-Identifier: Apache-2.0
//
// Records go through a pipe or a socket, each behind a byte that says what it is. For example, a
// run of one op:
//   Span { 0 s, 1 s, rank 0, op 0 }  Done { 1 task, 1 s, "native" }
// and one that deadlocks:
//   Error "the schedule deadlocks: ...", 0 mistakes
#pragma once

#include <sys/types.h>

#include <functional>

#include "sim/program/trace.h"

namespace interlock {

/// The parts of a trace that its reader asks for.
struct WantedTrace {
  bool spans = false, transfers = false, memory = false, collectives = false;
};
/// Returns the parts that `sink` has a function for.
WantedTrace wanted_by(const TraceSink& sink);

/// The status of a process whose memory ran out where it could not tell so.
inline constexpr int kOutOfMemory = 77;

/// Calls `run`, writes its trace or what it throws to `pipe`, and ends this process, in which
/// nothing else is under way.
[[noreturn]] void run_and_exit(int pipe, const WantedTrace& wanted,
                               const std::function<RunSummary(const TraceSink&)>& run) noexcept;

/// A process that is in run_and_exit(), and this end of its pipe. It has ended when this has.
class EngineProcess {
 public:
  EngineProcess(int pipe, pid_t id) : pipe_(pipe), id_(id) {}
  ~EngineProcess() { wait(); }
  EngineProcess(const EngineProcess&) = delete;
  EngineProcess& operator=(const EngineProcess&) = delete;

  /// Delivers the trace to `sink`, in order, and waits for the end of the process.
  /// Throws: Error (with its mistakes), Unavailable or std::bad_alloc that the engine threw,
  /// std::logic_error with the words of anything else; Unavailable if the process was ended from
  /// outside; std::bad_alloc if its memory ran out; std::runtime_error if it died otherwise.
  RunSummary take_trace(const TraceSink& sink);

 private:
  void wait();
  int pipe_;
  pid_t id_;
  int status_ = 0;  // as waitpid() tells it
};

}  // namespace interlock
