// interlock: one scenario in, a utilisation report out. The commands are in command_line.cc.
// SPDX-License-Identifier: Apache-2.0
//
// text -> Question -> Plan -> Program -> trace -> Metrics -> report: cli/simulate.cc shows the way.
// Exit codes: 0 success, 2 the user's mistake, 1 ours, or a target that was to be checked is
// missed.
#include <csignal>
#include <exception>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "cli/command_line.h"
#include "cli/console/exit_code.h"
#include "cli/console/terminal.h"
#include "scenarios/sweep/told_failure.h"

namespace {

/// Lets memory that one simulation has given back serve the next one, of which a search and a sweep
/// run thousands, in place of being taken from the system and cleared anew.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that it may be
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  keep_freed_memory();
  std::signal(SIGXFSZ, SIG_IGN);  // writing then fails, and says so
  try {
    return interlock::run_command_line(argc, argv);
  } catch (const std::exception& failure) {
    const interlock::ToldFailure told = interlock::told_failure(failure);
    interlock::tell(told.words);
    return told.ours ? interlock::kOurMistake : interlock::kUsersMistake;
  }
}
