// The module's side of HarnessCommands.
// SPDX-License-Identifier: Apache-2.0
#include "cli/parser/commands.h"
#include "cli/parser/harness_commands.h"

extern "C" const interlock::HarnessCommands* interlock_harness_commands() {
  static const interlock::HarnessCommands commands{
      .train = interlock::train,
      .validate_run = interlock::validate_run,
      .validate_fit = interlock::validate_fit,
      .validate_published = interlock::validate_published,
      .calibrate = interlock::calibrate};
  return &commands;
}
