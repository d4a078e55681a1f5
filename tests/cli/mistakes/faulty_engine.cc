// A module in the place of SimGrid's, which meets a bug in all but the program's own runs.
// SPDX-License-Identifier: Apache-2.0
//
// Runs for the process that opened it are native. Those for processes that this one has forked,
// e.g. to try a change, throw.
#include <unistd.h>

#include <stdexcept>

#include "sim/engines/engines.h"

namespace {

const pid_t opened_by = ::getpid();

}  // namespace

extern "C" void interlock_run_simgrid(const interlock::Program& program,
                                      const interlock::TraceSink& sink,
                                      interlock::RunSummary& summary) {
  if (::getppid() != opened_by) throw std::logic_error("a clock goes back");
  summary = interlock::run_event_loop(program, sink);
}
