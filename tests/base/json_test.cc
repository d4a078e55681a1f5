// Documents become trees that know their lines.
// SPDX-License-Identifier: Apache-2.0
#include "base/json/json.h"

#include <doctest/doctest.h>

#include "tests/base/thrown.h"

namespace interlock::json_test {
namespace {

using Kind = JsonValue::Kind;

std::string refusal(std::string_view text) {
  return thrown([&] { parse_json(text, "x.json"); });
}

TEST_CASE("each kind of value is read as it is written") {
  CHECK(parse_json("null", "x").kind == Kind::Null);
  CHECK(parse_json("true", "x").boolean);
  CHECK_FALSE(parse_json("false", "x").boolean);
  CHECK(parse_json("0", "x").number == 0);
  CHECK(parse_json("-12", "x").number == -12);
  CHECK(parse_json("2.5e-3", "x").number == 2.5e-3);
  CHECK(parse_json("123456789012345678901234567890", "x").number ==
        123456789012345678901234567890.0);
  CHECK(parse_json("\"a\\n\\u00e9\\ud83d\\ude00\\\"\"", "x").text ==
        "a\n\xc3\xa9\xf0\x9f\x98\x80\"");
  CHECK(parse_json("[]", "x").kind == Kind::Array);
  CHECK(parse_json("{}", "x").kind == Kind::Object);
}

TEST_CASE("members keep their order, and every value its file") {
  const JsonValue root = parse_json(R"({"b": 1, "a": [2, {"c": 3}], "": 4})", "x.json");
  REQUIRE(root.members.size() == 3);
  CHECK(root.members[0].first == "b");
  CHECK(root.members[1].first == "a");
  CHECK(root.find("")->number == 4);
  CHECK(root.find("none") == nullptr);
  const JsonValue* inner = root.find("a")->items[1].find("c");
  CHECK(inner->number == 3);
  CHECK(*inner->file == "x.json");
}

// Line numbers are what a person counts in the text below.
TEST_CASE("members have the line of their key, elements the line they start on") {
  const JsonValue root = parse_json(
      "{\n"                 // 1
      "  \"a\": 1,\n"       // 2: a number that ends at a comma
      "  \"b\": 2\n"        // 3: a number that ends at a line feed
      "  ,\"c\":\n"         // 4
      "     {\"d\": [10\n"  // 5
      "        ,20,\n"      // 6
      "        \"e\", [\n"  // 7
      "     30\n"           // 8
      "     ]], \"f\"\n"    // 9
      "  : true},\n"        // 10
      "  \"g\": null }\n"   // 11
      "\n",
      "x.json");
  CHECK(root.line == 1);
  CHECK(root.find("a")->line == 2);
  CHECK(root.find("b")->line == 3);
  CHECK(root.find("c")->line == 4);
  const JsonValue& d = *root.find("c")->find("d");
  CHECK(d.line == 5);
  CHECK(d.items[0].line == 5);
  CHECK(d.items[1].line == 6);
  CHECK(d.items[2].line == 7);
  CHECK(d.items[3].line == 7);
  CHECK(d.items[3].items[0].line == 8);
  CHECK(root.find("c")->find("f")->line == 9);
  CHECK(root.find("g")->line == 11);
}

TEST_CASE("lines are counted the same with carriage returns and a byte order mark") {
  const JsonValue root = parse_json("\xef\xbb\xbf{\r\n\"a\": 1,\r\n\"b\": 2\r\n}\r\n", "x");
  CHECK(root.find("a")->line == 2);
  CHECK(root.find("b")->line == 3);
}

TEST_CASE("comments are skipped and counted") {
  const JsonValue root = parse_json(
      "// first\n"
      "{ // \"a\": 0\n"
      "  /* two\n"
      "     lines */ \"a\": /* here */ 1 // there\n"
      "  , \"b\": \"// no comment\"\n"
      "} // last",
      "x");
  CHECK(root.members.size() == 2);
  CHECK(root.find("a")->line == 4);
  CHECK(root.find("b")->line == 5);
  CHECK(root.find("b")->text == "// no comment");
}

TEST_CASE("all duplicate keys are reported, each with both lines") {
  CHECK(refusal("{\"a\": 1,\n\"b\": [{}, {\"c\": 1, \n\"c\": 2}],\n\"a\": {\"x\": 1}}") ==
        "x.json:3: /b/1: duplicate key \"c\"; expected it once, but line 2 has it too\n"
        "x.json:4: duplicate key \"a\"; expected it once, but line 1 has it too");
  // Only within one object, and spelled out: the second key is the same two letters.
  CHECK_NOTHROW(parse_json(R"([{"a": {"a": 1}}, {"a": 1}])", "x"));
  CHECK(refusal(R"({"ab": 1, "\u0061b": 2})") ==
        "x.json:1: duplicate key \"ab\"; expected it once, but line 1 has it too");
}

TEST_CASE("duplicate keys inside a duplicate are found without confusion") {
  CHECK(refusal("{\"a\": 1, \"a\": {\"b\": {\"c\": 1, \"c\": 2}}}") ==
        "x.json:1: duplicate key \"a\"; expected it once, but line 1 has it too\n"
        "x.json:1: /a/b: duplicate key \"c\"; expected it once, but line 1 has it too");
}

TEST_CASE("64 levels are read, 65 are not") {
  const auto nested = [](int levels) {
    return std::string(static_cast<std::size_t>(levels), '[') +
           std::string(static_cast<std::size_t>(levels), ']');
  };
  CHECK_NOTHROW(parse_json(nested(64), "x"));
  CHECK(refusal(nested(65)).ends_with("nested too deeply; expected at most 64 levels"));
  CHECK(refusal(std::string(1'000'000, '[')).ends_with("expected at most 64 levels"));
}

TEST_CASE("numbers that overflow are refused, those that underflow are zero") {
  CHECK(refusal("{\"a\": [1,\n-1e999]}") ==
        "x.json:2: /a/1: a number is too large; expected at most 1.79e308");
  CHECK(parse_json("1e-999", "x").number == 0);
}

TEST_CASE("texts that would need too much memory are refused") {
  // The array itself is the first of the two million values.
  const auto array_of = [](const char* item, int count) {
    std::string text = std::string("[") + item;
    for (int i = 1; i < count; ++i) text += std::string(",") + item;
    return text + "]";
  };
  CHECK(parse_json(array_of("0", 1'999'999), "x").items.size() == 1'999'999);
  for (const char* item : {"0", "{}"}) {
    CHECK(refusal(array_of(item, 2'000'000)) ==
          "x.json:1: /1999999: too many values; expected at most 2000000");
  }
  CHECK(refusal(std::string((std::size_t{64} << 20) + 1, ' ')) ==
        "x.json: too large; expected at most 64 MiB");
}

TEST_CASE("a hundred thousand keys and as many duplicates take no time to speak of") {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += "\"k" + std::to_string(i % 100'000) + "\":0,";
  text += "\"end\":0}";
  CHECK(refusal(text).ends_with("and 99900 more mistakes"));
}

TEST_CASE("files are read with their path as name") {
  CHECK(thrown([] { read_json_file("no/such.json"); }) ==
        "no/such.json: cannot be read: no such file or directory");
}

}  // namespace
}  // namespace interlock::json_test
