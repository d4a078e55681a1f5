// SimGrid in a program of its own: a host is not forked.
// SPDX-License-Identifier: Apache-2.0
#include "base/module_file.h"
#include "sim/engines/engines.h"
#include "sim/processes/spawned.h"

namespace interlock {

RunSummary run_simgrid_apart(const Program& program, const TraceSink& sink) {
  return run_in_program(module_file("interlock-simgrid"), program, sink);
}

}  // namespace interlock
