// CommandLine: what was typed, carried out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace interlock {

/// Runs the command that the arguments name, and returns the exit code.
/// Throws: Error for a mistake of the user.
int run_command_line(int argc, char** argv);

}  // namespace interlock
