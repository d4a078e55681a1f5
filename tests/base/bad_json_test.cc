// Every file of bad_json/ is refused in the words that bad_json/messages.txt has for it.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <sstream>

#include "base/file.h"
#include "base/json/json.h"
#include "tests/base/thrown.h"

namespace interlock::bad_json_test {
namespace {

namespace fs = std::filesystem;

/// File names to messages, which begin with the name on each of their lines.
std::map<std::string, std::string> expected_messages() {
  std::map<std::string, std::string> messages;
  std::istringstream lines(read_file((fs::path(BAD_JSON_FOLDER) / "messages.txt").string()));
  for (std::string line; std::getline(lines, line);) {
    std::string& message = messages[line.substr(0, line.find(':'))];
    if (!message.empty()) message += '\n';
    message += line;
  }
  return messages;
}

TEST_CASE("each malformed file is refused with its line, what is there and what belongs there") {
  const std::map<std::string, std::string> expected = expected_messages();
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(BAD_JSON_FOLDER)) {
    if (entry.path().extension() != ".json") continue;
    const std::string name = entry.path().filename().string();
    const std::string text = read_file(entry.path().string());
    CAPTURE(name);
    REQUIRE(expected.contains(name));
    CHECK(thrown([&] { parse_json(text, name); }) == expected.at(name));
    ++files;
  }
  CHECK(files == expected.size());
}

TEST_CASE("a malformed text cut short anywhere is refused or whole, never a crash") {
  for (const auto& entry : fs::directory_iterator(BAD_JSON_FOLDER)) {
    const std::string text = read_file(entry.path().string());
    for (std::size_t length = 0; length < std::min<std::size_t>(text.size(), 300); ++length) {
      try {
        parse_json(std::string_view(text).substr(0, length), "x");
      } catch (const Error& error) {
        CHECK(std::string_view(error.what()).starts_with("x:"));
      }
    }
  }
}

}  // namespace
}  // namespace interlock::bad_json_test
