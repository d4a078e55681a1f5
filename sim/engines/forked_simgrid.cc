// SimGrid in a forked child: what programs do. libinterlock has another run_simgrid_apart().
// SPDX-License-Identifier: Apache-2.0
#include "sim/engines/engines.h"
#include "sim/processes/child.h"

namespace interlock {

RunSummary run_simgrid_apart(const Program& program, const TraceSink& sink) {
  load_simgrid();  // once for all children
  return run_in_child(program, sink, run_simgrid);
}

}  // namespace interlock
