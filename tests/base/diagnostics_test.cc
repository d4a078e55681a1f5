// How mistakes are collected and put together.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/base/thrown.h"

namespace interlock::diagnostics_test {
namespace {

TEST_CASE("a message says where it belongs, as far as that is known") {
  Diagnostics diagnostics;
  CHECK(diagnostics.empty());
  diagnostics.add("x.json", 3, "/a/b", "wrong");
  diagnostics.add("--set a.b=1", 0, "/a/b", "wrong");
  diagnostics.add("x.json", 3, "", "wrong");
  diagnostics.add("", 0, "", "wrong");
  CHECK(thrown([&] { diagnostics.throw_if_any(); }) ==
        "x.json:3: /a/b: wrong\n--set a.b=1: /a/b: wrong\nx.json:3: wrong\nwrong");
}

TEST_CASE("no mistake, no Error") { CHECK_NOTHROW(Diagnostics().throw_if_any()); }

TEST_CASE("names of files and keys cannot play tricks on the terminal") {
  Diagnostics diagnostics;
  diagnostics.add("x\n.json", 1, "/\x1b[31m", "wrong");
  CHECK(diagnostics.messages().front() == "x\\n.json:1: /\\u001b[31m: wrong");
}

TEST_CASE("of very many mistakes the first hundred are shown and the rest counted") {
  Diagnostics diagnostics;
  for (int i = 0; i < 150; ++i) {
    CHECK(diagnostics.full() == (i >= 100));
    diagnostics.add("x.json", i + 1, "", "wrong");
  }
  CHECK(diagnostics.messages().size() == 100);
  const std::string message = thrown([&] { diagnostics.throw_if_any(); });
  CHECK(message.ends_with("x.json:100: wrong\nand 50 more mistakes"));
}

}  // namespace
}  // namespace interlock::diagnostics_test
