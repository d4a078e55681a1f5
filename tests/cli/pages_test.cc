// Pages whose tables and pictures are what their commands write.
// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/pages.h"

namespace interlock::pages_test {
namespace {

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

}  // namespace
}  // namespace interlock::pages_test
