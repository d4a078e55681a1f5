// Bad scenarios: each file of bad/ begins with comments that hold what the program must say.
// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "base/file.h"
#include "tests/cli/child_program.h"
#include "tests/scenarios/schema/mutate.h"
#include "tests/support/cases.h"

namespace interlock::bad_test {
namespace {

/// The lines behind "// " at the top of a file.
std::string expected_in(const std::string& text) {
  std::istringstream lines(text);
  std::string expected;
  for (std::string line; std::getline(lines, line) && line.starts_with("// ");) {
    expected += line.substr(3) + "\n";
  }
  return expected;
}

TEST_CASE("each bad scenario is refused in the words at its top, and nothing is written") {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(BAD_FOLDER)) {
    const std::string name = entry.path().filename().string();
    CAPTURE(name);
    const std::string expected = expected_in(read_file(entry.path().string()));
    REQUIRE(expected.starts_with(name + ":"));
    const Outcome checked = run_program({"check", name}, BAD_FOLDER);
    CHECK(checked.exit_code == 2);
    CHECK(checked.out == "");
    CHECK(checked.err == expected);
    const Folder folder;
    const Outcome run =
        run_program({"simulate", name, "--json", folder.path("r.json")}, BAD_FOLDER);
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    CHECK(run.err == expected);
    CHECK(folder.files().empty());
    ++files;
  }
  CHECK(files >= 100);
}

TEST_CASE("mutations of good scenarios are right or refused, through the program") {
  int right = 0, wrong = 0;
  const auto count = static_cast<std::uint64_t>(cases(60));
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    CAPTURE(seed);
    const Outcome run = run_program({"check", "-"}, ".", mutated_scenario(seed));
    CHECK((run.exit_code == 0 || run.exit_code == 2));
    if (run.exit_code == 0) {
      CHECK(run.out.starts_with("-: ok"));
      ++right;
    } else {
      CHECK(run.out == "");
      CHECK(run.err.starts_with("standard input:"));
      ++wrong;
    }
  }
  MESSAGE(right << " right, " << wrong << " refused");
  CHECK(right > 3);
  CHECK(wrong > 30);
}

}  // namespace
}  // namespace interlock::bad_test
