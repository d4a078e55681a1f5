// Pages: what their commands write, and that their scenarios and links are right.
// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/pages.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "base/file.h"

namespace interlock::pages_test {
namespace {

namespace fs = std::filesystem;

/// Returns the anchors of the headings of a page, as sites make them.
std::set<std::string> anchors_of(const std::string& text) {
  std::set<std::string> anchors;
  std::istringstream stream(text);
  bool code = false;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("```")) code = !code;
    if (code || !line.starts_with('#')) continue;
    std::string anchor;
    for (const char c : line.substr(line.find(' ') + 1)) {
      const auto letter = static_cast<unsigned char>(c);
      if (c == ' ' || c == '-') anchor += '-';
      if (std::isalnum(letter) || c == '_') anchor += static_cast<char>(std::tolower(letter));
    }
    anchors.insert(anchor);
  }
  return anchors;
}

TEST_CASE("every link between pages leads to a file, and to a heading of it") {
  const fs::path root = SOURCE_FOLDER;
  std::vector<fs::path> pages = {root / "README.md", root / "HACKING.md", root / "CHANGELOG.md"};
  for (const auto& entry : fs::directory_iterator(root / "docs")) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  int links = 0;
  const std::regex link(R"(\]\(([^)\s#]*)(?:#([^)\s]*))?\))");
  for (const fs::path& page : pages) {
    const std::string text = read_file(page.string());
    for (std::sregex_iterator match(text.begin(), text.end(), link), end; match != end; ++match) {
      const std::string file = (*match)[1], anchor = (*match)[2];
      if (file.starts_with("http")) continue;
      INFO(page.filename().string() << ": " << file << "#" << anchor);
      const fs::path target = file.empty() ? page : page.parent_path() / file;
      REQUIRE(fs::exists(target));
      if (!anchor.empty()) CHECK(anchors_of(read_file(target.string())).count(anchor) == 1);
      ++links;
    }
  }
  CHECK(links > 100);
}

TEST_CASE("a page has its commands, and what the last of a block prints") {
  const Page page = read_page(
      "text\n```sh\n./run a --out docs/related/a.svg\n./run b --out -\n```\n\n| x |\n| 1 |\n\n"
      "```sh\n./run c\n```\n\n```\nline\n```\n");
  REQUIRE(page.commands.size() == 3);
  CHECK(page.commands[0].out() == "docs/related/a.svg");
  CHECK(page.printed(page.commands[0]) == "");
  CHECK(page.commands[1].out() == "");
  CHECK(page.printed(page.commands[1]) == "| x |\n| 1 |\n");
  CHECK(page.printed(page.commands[2]) == "line\n");
}

TEST_CASE("a command goes on in the next line after a backslash") {
  const Page page = read_page("```sh\n./run a \\\n  --b\n```\n\n```\nline\n```\n");
  REQUIRE(page.commands.size() == 1);
  CHECK(page.commands[0].line == "./run a \\\n  --b");
  CHECK(page.printed(page.commands[0]) == "line\n");
}

TEST_CASE("the page README.md is what its commands write") { check_page("README.md", true); }

TEST_CASE("README.md has at most 150 lines of at most 120 characters") {
  const Page page = read_page(read_file(SOURCE_FOLDER "/README.md"));
  CHECK(page.lines.size() <= 150);
  for (const std::string& line : page.lines) {
    CAPTURE(line);
    CHECK(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }) <=
          120);
  }
}

TEST_CASE("the page docs/questions.md is what its commands write") {
  check_page("docs/questions.md", true);
}

TEST_CASE("the page docs/models-and-machines.md is what its commands write") {
  check_page("docs/models-and-machines.md", true);
}

TEST_CASE("the page docs/parallelism.md is what its commands write") {
  check_page("docs/parallelism.md", true);
}

TEST_CASE("the page docs/figures.md is what its commands write") {
  check_page("docs/figures.md", true);
}

TEST_CASE("the pages of explain, plan, ranges, search and sweeps are what their commands write") {
  for (const char* page : {"explain", "plan", "ranges", "search", "sweeps"}) {
    CAPTURE(page);
    check_page("docs/" + std::string(page) + ".md", true);
  }
}

TEST_CASE("every scenario in docs/questions.md is right") {
  const std::string text = read_file(SOURCE_FOLDER "/docs/questions.md");
  const std::string fence = "```jsonc\n";
  REQUIRE(text.find(fence) != text.npos);
  for (std::size_t at = text.find(fence); at != text.npos; at = text.find(fence, at + 1)) {
    const std::size_t start = at + fence.size();
    const std::string scenario = text.substr(start, text.find("```", start) - start);
    const Outcome run = run_program({"check", "-"}, ".", scenario);
    CHECK(run.err == "");
    CHECK(run.exit_code == 0);
  }
}

TEST_CASE("the index of docs/ lists every page") {
  const std::string index = read_file(SOURCE_FOLDER "/docs/README.md");
  for (const auto& entry : fs::directory_iterator(SOURCE_FOLDER "/docs")) {
    const std::string page = entry.path().filename().string();
    CAPTURE(page);
    if (entry.path().extension() != ".md" || page == "README.md") continue;
    CHECK(index.find("](" + page + ")") != index.npos);
  }
}

TEST_CASE("the page docs/related-systems.md is what its commands write") {
  check_page("docs/related-systems.md", true);
}

TEST_CASE("the page docs/recipes.md has the rows and words that its commands write") {
  check_page("docs/recipes.md", false);
}

TEST_CASE("the page docs/reference.md is what schema --reference prints") {
  check_printed("docs/reference.md", {"schema", "--reference"});
}

TEST_CASE("the page of editors, scenarios/scenario.schema.json, is what schema prints") {
  check_printed("scenarios/scenario.schema.json", {"schema"});
}

TEST_CASE("the page docs/interlocking.md has the rows and words that its commands write") {
  check_page("docs/interlocking.md", false);
}

TEST_CASE("the page docs/interlocking-today.md is what its commands write") {
  check_page("docs/interlocking-today.md", true);
}

TEST_CASE("the page docs/asynchronous.md is what its commands write") {
  check_page("docs/asynchronous.md", true);
}

}  // namespace
}  // namespace interlock::pages_test
