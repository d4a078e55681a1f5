// Ctrl-C while a command thinks: one line, the exit code of an interrupt, and no file.
// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/child_program.h"

namespace interlock::interrupt_test {
namespace {

/// Some seconds of what takes many, and then the signal that a terminal sends to all its processes.
Outcome interrupted(const std::string& arguments, int seconds, const Folder& folder) {
  return run_shell("timeout --preserve-status -s INT " + std::to_string(seconds) +
                       " '" INTERLOCK_PROGRAM "' " + arguments,
                   folder.path());
}

TEST_CASE("init, explain and search end at an interrupt with one line, and write nothing") {
  const std::string large = "'" SCENARIOS_FOLDER "/examples/gpt3-175b-64-a100.json'";
  for (const std::string& arguments :
       {std::string("init --model gpt3-175b --machine dgx-a100-80g --devices 100000 --out s.json"),
        "explain " + large + " --json s.json", "search " + large + " --jobs 1 --out s.json"}) {
    CAPTURE(arguments);
    const Folder folder;
    Outcome run = interrupted(arguments, 1, folder);
    if (run.err.empty())
      run = interrupted(arguments, 5, folder);  // it had hardly begun: busy machine
    CHECK(run.exit_code == 130);
    CHECK(run.err == "interrupted: nothing was written\n");
    CHECK(run.out == "");
    CHECK(folder.files().empty());
  }
}

}  // namespace
}  // namespace interlock::interrupt_test
