// CommandLine: what was typed, carried out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace interlock {

/// Exit codes: a target that was to be checked is missed, or it is our mistake; the user's mistake;
/// an interrupt, as shells count it.
inline constexpr int kSuccess = 0, kMissed = 1, kOurMistake = 1, kUsersMistake = 2,
                     kInterrupted = 130;

/// Runs the command that the arguments name, and returns the exit code.
/// Throws: Error for a mistake of the user.
int run_command_line(int argc, char** argv);

}  // namespace interlock
