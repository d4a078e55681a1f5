// Ctrl-C while a command thinks: one line, the exit code of an interrupt, and no file.
// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/child_program.h"

namespace interlock::interrupt_test {
namespace {

// Each takes seconds from when it can be interrupted.
TEST_CASE("init, explain and search end at an interrupt with one line, and write nothing") {
  const std::string large = SCENARIOS_FOLDER "/examples/gpt3-175b-64-a100.json";
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"init", "--model", "gpt3-175b", "--machine", "dgx-a100-80g", "--devices", "100000",
            "--out", "s.json"},
           {"explain", large, "--json", "s.json"},
           {"search", large, "--jobs", "1", "--out", "s.json"}}) {
    CAPTURE(arguments.front());
    const Folder folder;
    const Outcome run = interrupt_program(arguments, folder.path());
    CHECK(run.exit_code == 130);
    CHECK(run.err == "interrupted: nothing was written\n");
    CHECK(run.out == "");
    CHECK(folder.files().empty());
  }
}

TEST_CASE("a terminal that is closed ends a search as an interrupt does") {
  const Folder folder;
  const Outcome run =
      interrupt_program({"search", SCENARIOS_FOLDER "/examples/gpt3-175b-64-a100.json", "--jobs",
                         "1", "--out", "s.json"},
                        folder.path(), SIGHUP);
  CHECK(run.exit_code == 130);
  CHECK(run.err == "interrupted: nothing was written\n");
  CHECK(folder.files().empty());
}

}  // namespace
}  // namespace interlock::interrupt_test
