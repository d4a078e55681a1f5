// ExitCode: what the program returns to the shell.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace interlock {

/// Exit codes: a target that was to be checked is missed, or it is our mistake; the user's mistake;
/// an interrupt, as shells count it.
inline constexpr int kSuccess = 0, kMissed = 1, kOurMistake = 1, kUsersMistake = 2,
                     kInterrupted = 130;

}  // namespace interlock
