// The program interlock-simgrid, which libinterlock starts for each run of SimGrid.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "sim/engines/engines.h"
#include "sim/processes/spawned.h"

int main() {
  const std::string problem = interlock::serve_program(interlock::run_simgrid);
  std::fprintf(stderr,
               "interlock-simgrid: %s; expected to be started by libinterlock, for a run of "
               "SimGrid\n",
               problem.c_str());
  return 2;
}
