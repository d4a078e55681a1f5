// interlock: one scenario in, a utilisation report out. The commands are in command_line.cc.
// SPDX-License-Identifier: Apache-2.0
//
// text -> Question -> Plan -> Program -> trace -> Metrics -> report: cli/simulate.cc shows the way.
// Exit codes: 0 success, 2 the user's mistake, 1 ours, or a target that was to be checked is
// missed.
#include <csignal>
#include <exception>
#include <new>

#include "base/error.h"
#include "cli/command_line.h"
#include "cli/console/exit_code.h"
#include "cli/console/terminal.h"

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // writing then fails, and says so
  try {
    return interlock::run_command_line(argc, argv);
  } catch (const interlock::Error& mistake) {
    interlock::tell(mistake.what());
    return interlock::kUsersMistake;
  } catch (const std::bad_alloc&) {
    interlock::tell(
        "there is not enough memory for this; expected a smaller scenario (fewer devices, stages "
        "or micro-batches), or more memory");
    return interlock::kUsersMistake;
  } catch (const std::exception& bug) {
    interlock::tell(std::string("this is a bug in interlock: ") + bug.what());
    return interlock::kOurMistake;
  }
}
