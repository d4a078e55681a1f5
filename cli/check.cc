// interlock check: whether scenario files are right, without running them.
// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/terminal.h"

namespace interlock {

void check(const CommandOptions& options) {
  load_inputs(options, [&](const std::string& file, std::size_t scenarios) {
    if (options.quiet) return;
    print(file + ": ok" + (scenarios > 1 ? " (" + std::to_string(scenarios) + " scenarios)" : "") +
          "\n");
  });
}

}  // namespace interlock
