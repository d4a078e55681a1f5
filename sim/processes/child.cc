// An engine in a forked child: its trace comes back through a pipe.
// SPDX-License-Identifier: Apache-2.0
#include "sim/processes/child.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "sim/processes/trace_pipe.h"
#include "sim/processes/unavailable.h"

namespace interlock {

RunSummary run_in_child(const Program& program, const TraceSink& sink,
                        RunSummary (*engine)(const Program&, const TraceSink&)) {
  int ends[2];
  if (::pipe(ends) != 0) {
    throw Unavailable(std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  std::fflush(nullptr);  // or the child might print what waits here a second time
  const pid_t id = ::fork();
  if (id == 0) {
    ::close(ends[0]);
    run_and_exit(ends[1], wanted_by(sink),
                 [&](const TraceSink& writer) { return engine(program, writer); });
  }
  const int why = errno;
  ::close(ends[1]);
  EngineProcess child(ends[0], id);
  if (id < 0) throw Unavailable(std::string("cannot start a process: ") + std::strerror(why));
  return child.take_trace(sink);
}

}  // namespace interlock
