// README.md: every command that it shows works, and so does every scenario.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <set>
#include <sstream>
#include <string_view>

#include "base/file.h"
#include "tests/cli/pages.h"
#include "tests/support/cases.h"

namespace interlock::readme_test {
namespace {

/// The blocks of README.md that are fenced by ``` and `language`, which may be none.
std::vector<std::string> blocks(const std::string& language) {
  std::istringstream lines(read_file(SOURCE_FOLDER "/README.md"));
  std::vector<std::string> found;
  bool fenced = false;
  bool wanted = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      fenced = !fenced;
      wanted = fenced && line == "```" + language;
      if (wanted) found.emplace_back();
    } else if (wanted) {
      found.back() += line + "\n";
    }
  }
  return found;
}

/// Its lines that run the program; ./test and the programs of tests run without this one's help.
std::vector<std::string> commands() {
  std::vector<std::string> found;
  for (const std::string& block : blocks("sh")) {
    std::istringstream lines(block);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("./run") || line.starts_with("interlock ")) found.push_back(line);
    }
  }
  return found;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// All published sources together take half a minute; without a soak, those whose rows are short.
std::string shortened(const std::string& command) {
  const std::string_view published = "./run validate published";
  if (is_soak() || !command.starts_with(published)) return command;
  return std::string(published) + " --source torchgpipe --source gpipe --source chimera-blocks" +
         command.substr(published.size());
}

TEST_CASE("every command line in README.md succeeds, and writes what README.md shows of it") {
  const Folder folder;
  furnish(folder);
  REQUIRE(commands().size() >= 8);
  std::set<std::string> written;
  for (const std::string& command : commands()) {
    CAPTURE(command);
    const Outcome run = run_shell(shortened(command), folder.path());
    CAPTURE(run.err);
    CHECK(run.exit_code == 0);
    CHECK(run.out != "");
    for (const std::string& line : lines_of(run.out)) written.insert(line);
  }
  REQUIRE(blocks("").size() >= 7);
  for (const std::string& block : blocks("")) {
    for (const std::string& line : lines_of(block)) {
      CAPTURE(line);
      CHECK(written.contains(line));
    }
  }
}

TEST_CASE("the figures in README.md are what its commands write") {
  const Folder folder;
  furnish(folder);
  for (const char* name : {"sweep", "timelines"}) {
    const std::string out = std::string(name) + ".svg";
    for (const std::string& command : commands()) {
      if (command.ends_with(" --out " + out)) run_shell(command, folder.path());
    }
    INFO("docs/" << out << ", which the command ending with --out " << out << " writes");
    CHECK(read_file(folder.path(out)) == read_file(SOURCE_FOLDER "/docs/" + out));
  }
}

TEST_CASE("every scenario in README.md is right") {
  REQUIRE(!blocks("jsonc").empty());
  for (const std::string& scenario : blocks("jsonc")) {
    const Outcome run = run_program({"check", "-"}, ".", scenario);
    CHECK(run.err == "");
    CHECK(run.exit_code == 0);
  }
}

TEST_CASE("every file that README.md links to is there") {
  const std::string text = read_file(SOURCE_FOLDER "/README.md");
  int links = 0;
  for (std::size_t at = text.find("]("); at != text.npos; at = text.find("](", at + 1), ++links) {
    const std::string target = text.substr(at + 2, text.find_first_of(")#", at) - at - 2);
    CAPTURE(target);
    CHECK(std::filesystem::exists(SOURCE_FOLDER "/" + target));
  }
  CHECK(links > 5);
}

}  // namespace
}  // namespace interlock::readme_test
