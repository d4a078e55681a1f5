// Wrong command lines: each in wrong_command_lines.txt, with what the program must say of it.
// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "base/file.h"
#include "tests/cli/child_program.h"

namespace interlock::wrong_command_lines_test {
namespace {

TEST_CASE("wrong command lines are refused in words that are written down, and write nothing") {
  std::istringstream lines(read_file(WRONG_COMMAND_LINES));
  const std::string start = "$ interlock ";
  int cases = 0;
  for (std::string line; std::getline(lines, line); ++cases) {
    REQUIRE(line.starts_with(start));
    const std::string command = line.substr(start.size());
    CAPTURE(command);
    std::istringstream typed(command);
    std::vector<std::string> words;
    for (std::string word; typed >> word;) words.push_back(word);
    std::string expected;
    while (std::getline(lines, line) && !line.empty()) expected += line + "\n";
    const Folder folder;
    folder.file("toy.json", kPairwise);
    const Outcome run = run_program(words, folder.path());
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    CHECK(run.err == expected);
    CHECK(folder.files() == std::vector<std::string>{"toy.json"});
  }
  CHECK(cases > 100);
}

TEST_CASE("help that cannot be written is a mistake, as any output is") {
  for (const char* command : {" --help", " --version", " help", " simulate --help"}) {
    CAPTURE(command);
    const Outcome run =
        run_shell("'" INTERLOCK_PROGRAM "'" + std::string(command) + " >/dev/full", ".");
    CHECK(run.exit_code == 2);
    CHECK(run.err.starts_with("cannot write to standard output: "));
  }
}

}  // namespace
}  // namespace interlock::wrong_command_lines_test
