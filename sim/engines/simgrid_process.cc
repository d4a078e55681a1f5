// The program interlock-simgrid, which libinterlock starts for each run of SimGrid.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "sim/engines/engines.h"
#include "sim/processes/spawned.h"

int main() {
  interlock::serve_program(interlock::run_simgrid);
  std::fputs("interlock-simgrid: libinterlock starts this program for a run of SimGrid\n", stderr);
  return 2;
}
