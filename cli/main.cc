// interlock: one scenario in, a utilisation report out. The commands are in command_line.cc.
// SPDX-License-Identifier: Apache-2.0
//
// text -> Question -> Plan -> Program -> trace -> Metrics -> report: cli/simulate.cc shows the way.
// Exit codes: 0 success, 2 the user's mistake, 1 ours, or a target that was to be checked is
// missed.
#include <csignal>
#include <exception>

#include "cli/command_line.h"
#include "cli/console/exit_code.h"
#include "cli/console/terminal.h"
#include "scenarios/sweep/told_failure.h"

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // writing then fails, and says so
  try {
    return interlock::run_command_line(argc, argv);
  } catch (const std::exception& failure) {
    const interlock::ToldFailure told = interlock::told_failure(failure);
    interlock::tell(told.words);
    return told.ours ? interlock::kOurMistake : interlock::kUsersMistake;
  }
}
