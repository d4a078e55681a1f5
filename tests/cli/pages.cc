// Reads pages, runs their commands, and rewrites what they wrote.
// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/pages.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <tuple>

#include "base/file.h"

namespace interlock {
namespace {

const std::string kRoot = SOURCE_FOLDER "/";

bool is_blank(const std::string& line) { return line.find_first_not_of(' ') == line.npos; }

std::string joined(const std::vector<std::string>& lines, std::size_t from, std::size_t to) {
  std::string text;
  for (std::size_t i = from; i < to; ++i) text += lines[i] + "\n";
  return text;
}

/// Returns the place of the answer to a block of commands that ends before line `at`.
std::pair<std::size_t, std::size_t> answer_after(const std::vector<std::string>& lines,
                                                 std::size_t at) {
  while (at < lines.size() && is_blank(lines[at])) ++at;
  if (at == lines.size()) return {at, at};
  std::size_t end = at;
  if (lines[at] == "```") {
    for (end = ++at; end < lines.size() && lines[end] != "```";) ++end;
  } else if (lines[at].starts_with("|")) {
    while (end < lines.size() && lines[end].starts_with("|")) ++end;
    const bool noted =
        end + 1 < lines.size() && lines[end].empty() && lines[end + 1].starts_with("†");
    if (noted) end += 2;
  }
  return {at, end};
}

/// Text without what a change of prices changes: digits, points, and the room for them.
std::string words_of(const std::string& text) {
  std::string words;
  for (const char c : text) {
    if (std::string_view("0123456789.- ").find(c) == std::string_view::npos) words += c;
  }
  return words;
}

std::string renewed(const Page& page, const std::vector<std::string>& answers) {
  std::string text;
  std::size_t line = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const PageCommand& command = page.commands[i];
    if (command.from == command.to) continue;
    text += joined(page.lines, line, command.from) + answers[i];
    line = command.to;
  }
  return text + joined(page.lines, line, page.lines.size());
}

void check_picture(const PageCommand& command, const Folder& folder, bool exact, bool update) {
  const std::string made = read_file(folder.path(command.out()));
  if (update) write_file(kRoot + command.out(), made);
  const bool there = std::filesystem::exists(kRoot + command.out());
  INFO("to renew it: UPDATE_PAGES=1 build/bin/cli_test -tc='the page*'");
  REQUIRE(there);
  if (!exact) return;
  const bool same = made == read_file(kRoot + command.out());
  CHECK(same);
}

}  // namespace

void furnish(const Folder& folder) {
  std::filesystem::create_symlink(SOURCE_FOLDER "/scenarios", folder.path("scenarios"));
  std::filesystem::create_symlink(SOURCE_FOLDER "/README.md", folder.path("README.md"));
  const std::string start = "#!/bin/sh\n[ $# -gt 0 ] || set -- compare --report r.html ";
  folder.file("run", start + "scenarios/quickstart/*.json\nexec '" INTERLOCK_PROGRAM "' \"$@\"\n");
  std::filesystem::permissions(folder.path("run"), std::filesystem::perms::owner_all);
}

std::string PageCommand::out() const {
  for (const std::string option : {" --out docs/", " --figure docs/"}) {
    const std::size_t at = line.find(option);
    if (at == line.npos) continue;
    const std::size_t from = at + option.size() - 5;  // with the folder
    return line.substr(from, line.find(' ', from) - from);
  }
  return "";
}

std::string Page::printed(const PageCommand& command) const {
  return joined(lines, command.from, command.to);
}

Page read_page(const std::string& text) {
  Page page;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) page.lines.push_back(line);
  bool inside = false;
  for (std::size_t i = 0; i < page.lines.size(); ++i) {
    const std::string& line = page.lines[i];
    if (inside && line == "```" && !page.commands.empty()) {
      PageCommand& last = page.commands.back();
      if (last.out().empty()) std::tie(last.from, last.to) = answer_after(page.lines, i + 1);
    }
    if (inside && line.starts_with("./run")) {
      page.commands.push_back({line});
      while (page.lines[i].ends_with('\\') && i + 1 < page.lines.size()) {
        page.commands.back().line += "\n" + page.lines[++i];
      }
      continue;
    }
    inside = line == "```sh" || (inside && line != "```");
  }
  return page;
}

void check_printed(const std::string& path, const std::vector<std::string>& words) {
  const Outcome run = run_program(words);
  REQUIRE(run.exit_code == 0);
  if (std::getenv("UPDATE_PAGES") != nullptr) write_file(kRoot + path, run.out);
  INFO("to renew it: UPDATE_PAGES=1 build/bin/cli_test -tc='the page*'");
  const bool same = run.out == read_file(kRoot + path);
  CHECK(same);
}

void check_page(const std::string& path, bool exact) {
  const bool update = std::getenv("UPDATE_PAGES") != nullptr;
  const Page page = read_page(read_file(kRoot + path));
  REQUIRE(!page.commands.empty());
  const Folder folder;
  furnish(folder);
  std::filesystem::create_directories(folder.path("docs/related"));
  std::vector<std::string> answers;
  for (const PageCommand& command : page.commands) {
    CAPTURE(command.line);
    const Outcome run = run_shell(command.line, folder.path());
    CAPTURE(run.err);
    REQUIRE(run.exit_code == 0);
    answers.push_back(run.out);
    if (!command.out().empty()) check_picture(command, folder, exact, update);
    if (update || command.from == command.to) continue;
    INFO("to renew it: UPDATE_PAGES=1 build/bin/cli_test -tc='the page*'");
    const std::string told = page.printed(command);
    CHECK((exact ? told : words_of(told)) == (exact ? run.out : words_of(run.out)));
  }
  if (update) write_file(kRoot + path, renewed(page, answers));
}

}  // namespace interlock
