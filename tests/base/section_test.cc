// Sections are read by rows: their ranges, names and defaults, and the messages that follow.
// SPDX-License-Identifier: Apache-2.0
#include "base/contract/section.h"

#include <doctest/doctest.h>

#include <functional>

namespace interlock::section_test {
namespace {

const ContractObject& crane() {
  using namespace contract;
  static const ContractObject object = {
      .name = "crane",
      .meaning = "A crane.",
      .keys = {{"kind", one_of({"tower", "overhead"}), "tower", "Its form."},
               {"hooks", whole(1, 4), "2", "Hooks."},
               {"share", number(0, 0.5), "0.25", "Share."},
               {"fast", boolean(), "true", "Whether it is fast."},
               {"delay", time(), "3 us", "Delay."},
               {"load", size(), "2 KiB", "Load."},
               {"arms", list(whole(1, 9), 1, 3), "`hooks`", "Lengths of arms.", {"tower"}}}};
  return object;
}

/// Returns the messages that `read` adds when it reads `text`, joined by line feeds.
std::string messages(std::string_view text, const std::function<void(Section&)>& read) {
  const JsonValue root = parse_json(text, "x.json");
  Diagnostics diagnostics;
  Section section(crane(), {&root, ""}, diagnostics);
  read(section);
  std::string joined;
  for (const std::string& message : diagnostics.messages()) {
    joined += (joined.empty() ? "" : "\n") + message;
  }
  return joined;
}

TEST_CASE("an absent key has the default of its row, or the reader's") {
  CHECK(messages("{}", [](Section& section) {
          CHECK(section.choice("kind") == 0);
          CHECK(section.choice("kind", 1) == 1);
          CHECK(section.count("hooks") == 2);
          CHECK(section.count("hooks", 3) == 3);
          CHECK(section.number("share") == 0.25);
          CHECK(section.boolean("fast"));
          CHECK_FALSE(section.boolean("fast", false));
          CHECK(section.seconds("delay") == Seconds(3e-6));
          CHECK(section.bytes("load") == Bytes(2048));
          CHECK_FALSE(section.written_count("hooks").has_value());
          CHECK_FALSE(section.get("arms").has_value());
          section.finish();
        }) == "");
}

TEST_CASE("a written key has its value") {
  const std::string text = R"({"kind": "overhead", "hooks": 4, "share": 0.5, "fast": false,
                               "delay": "1 ms", "load": "0 B"})";
  CHECK(messages(text, [](Section& section) {
          CHECK(section.choice("kind") == 1);
          CHECK(section.required_count("hooks", "hooks") == 4);
          CHECK(section.number("share") == 0.5);
          CHECK_FALSE(section.boolean("fast"));
          CHECK(section.seconds("delay") == Seconds(1e-3));
          CHECK(section.bytes("load") == Bytes(0));
        }) == "");
}

TEST_CASE("what a row does not allow is reported, and the default returned") {
  const std::string text = R"({"kind": "mobile", "hooks": 5, "share": 0.75})";
  CHECK(messages(text,
                 [](Section& section) {
                   CHECK(section.choice("kind") == 0);
                   CHECK(section.count("hooks") == 2);
                   CHECK(section.required_count("hooks", "hooks") == 1);
                   CHECK(section.number("share") == 0.25);
                 }) ==
        "x.json:1: /kind: unknown name \"mobile\"; known: tower, overhead\n"
        "x.json:1: /hooks: expected a whole number from 1 to 4, got 5\n"
        "x.json:1: /hooks: expected a whole number from 1 to 4, got 5\n"
        "x.json:1: /share: expected a number from 0 to 0.5, got 0.75");
  CHECK(messages("{}", [](Section& section) { section.required_count("hooks", "some hooks"); }) ==
        "x.json:1: missing key \"hooks\"; expected some hooks");
}

TEST_CASE("a list has as many items as its row says, each in the row's range") {
  const auto read = [](Section& section) {
    for (const JsonNode& arm :
         section.items_at("arms", *section.get("arms"), "wrong list", "lengths such as [3]")) {
      section.count_at("arms", arm);
    }
  };
  const std::string wrong = "x.json:1: /arms: wrong list; expected 1 to 3 lengths such as [3]";
  for (const char* arms : {"[]", "[1, 1, 1, 1]", "3", "{}"}) {
    CHECK(messages(R"({"arms": )" + std::string(arms) + "}", read) == wrong);
  }
  CHECK(messages(R"({"arms": [9, 0]})", read) ==
        "x.json:1: /arms/1: expected a whole number from 1 to 9, got 0");
}

TEST_CASE("a key of other kinds is reported with the kinds that have it") {
  const auto refuse = [](const std::string& kind) {
    return messages(R"({"arms": [1]})",
                    [&](Section& section) { section.refuse_unused(kind, "crane"); });
  };
  CHECK(refuse("tower") == "");
  CHECK(refuse("overhead") ==
        "x.json:1: /arms: means nothing for an overhead crane; expected only with tower");
  CHECK(refuse("") ==
        "x.json:1: /arms: means nothing without a \"kind\"; expected only with tower");
}

}  // namespace
}  // namespace interlock::section_test
