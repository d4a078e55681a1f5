// Seeded damage to a good document: whatever comes of it, the parser returns or throws Error.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

#include "base/json/json.h"
#include "base/random.h"

namespace interlock::mutation_test {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view kGood = R"({
  // a document with every kind of value
  "name": "four GPUs, caf\u00e9 \ud83d\ude00", /* and a comment */
  "cluster": {"machine": "dgx-a100-80g", "nodes": 1, "link": {"bandwidth": "450 GB/s"}},
  "partition": [5, 4, 5, -4, 2.5e-3, 0, 12345678901234567890],
  "flags": [true, false, null, [], {}, ""]
})";

/// Changes, removes, repeats or inserts a byte or a run of bytes, one to four times.
std::string mutate(std::string text, Random& random) {
  constexpr std::string_view kTelling = "{}[]\",:\\/*0-+.eEtfnu\n\0\xff\xc3 "sv;
  const int changes = random.integer(1, 4);
  for (int i = 0; i < changes && !text.empty(); ++i) {
    const auto at = static_cast<std::size_t>(random.integer(0, static_cast<int>(text.size()) - 1));
    const auto length = static_cast<std::size_t>(random.integer(1, 12));
    const char telling = kTelling[static_cast<std::size_t>(
        random.integer(0, static_cast<int>(kTelling.size()) - 1))];
    switch (random.integer(0, 5)) {
      case 0:
        text[at] = static_cast<char>(random.integer(0, 255));
        break;
      case 1:
        text[at] = telling;
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at, text.substr(at, length));
        break;
      case 4:
        text.insert(at, length, telling);
        break;
      default:
        text.resize(at);
    }
  }
  return text;
}

/// "" if `message` is `m.json:LINE: ...` with a line of the text, else what is wrong with it.
std::string flaw(const std::string& message, std::string_view text) {
  constexpr std::string_view kName = "m.json:";
  if (!message.starts_with(kName)) return "no file: " + message;
  const int line = std::atoi(message.c_str() + kName.size());
  const auto lines = 1 + std::count(text.begin(), text.end(), '\n');
  if (line < 1 || line > lines) return "no such line: " + message;
  for (const char c : message) {
    const bool control = static_cast<unsigned char>(c) < 0x20 && c != '\n';
    if (control) return "a control character: " + message;
  }
  return "";
}

TEST_CASE("10,000 mutations of a document parse or give an Error with a line") {
  REQUIRE_NOTHROW(parse_json(kGood, "m.json"));
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    CAPTURE(seed);
    Random random(seed, 0);
    const std::string text = mutate(std::string(kGood), random);
    try {
      parse_json(text, "m.json");
    } catch (const Error& error) {
      ++refused;
      CHECK(flaw(error.what(), text) == "");
    }
  }
  // Both outcomes occur often: a change inside a string or a comment does no harm.
  CHECK(refused > 5'000);
  CHECK(refused < 9'900);
}

TEST_CASE("1,000 texts of random telling bytes parse or give an Error with a line") {
  constexpr std::string_view kBytes = "{}[]\",:\\/*01-.eu \n";
  for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
    CAPTURE(seed);
    Random random(seed, 1);
    std::string text(static_cast<std::size_t>(random.integer(0, 40)), ' ');
    for (char& c : text)
      c = kBytes[static_cast<std::size_t>(random.integer(0, static_cast<int>(kBytes.size()) - 1))];
    try {
      parse_json(text, "m.json");
    } catch (const Error& error) {
      CHECK(flaw(error.what(), text) == "");
    }
  }
}

}  // namespace
}  // namespace interlock::mutation_test
