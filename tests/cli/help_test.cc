// interlock help: the help of every command, and names that are none.
// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/child_program.h"

namespace interlock::help_test {
namespace {

TEST_CASE("help of a command is its --help, and a name that is none gets the nearest") {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{}, {"sweep"}, {"validate"}, {"validate", "run"}, {"help"}}) {
    std::vector<std::string> asked = {"help"}, option = command;
    asked.insert(asked.end(), command.begin(), command.end());
    option.emplace_back("--help");
    const Outcome help = run_program(asked);
    CHECK(help.exit_code == 0);
    CHECK(help.out == run_program(option).out);
    CHECK(help.out.find("Usage: interlock") != std::string::npos);
  }
  MESSAGE("options may stand before the name");
  const Outcome behind = run_program({"help", "sweep", "--json", "-"});
  CHECK(behind.out.find("--shard") != std::string::npos);
  CHECK(run_program({"help", "--json", "-", "sweep"}).out == behind.out);
  for (const auto& [asked, said] :
       {std::pair<std::vector<std::string>, std::string>{{"help", "swep"},
                                                         "\"swep\"; did you mean \"sweep\"?"},
        {{"help", "validate", "rnu"}, "\"rnu\"; did you mean \"run\"?"},
        {{"validate", "rnu"}, "\"rnu\"; did you mean \"run\"?"},
        {{"help", "man", "x"}, "\"x\"; no command is below this one"}}) {
    const Outcome wrong = run_program(asked);
    CHECK(wrong.exit_code == 2);
    CHECK(wrong.out == "");
    CHECK(wrong.err == "unknown command " + said + "\n");
  }
}

}  // namespace
}  // namespace interlock::help_test
