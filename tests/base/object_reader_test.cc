// Every message that reading an object can give, in full.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <climits>
#include <functional>
#include <limits>

#include "base/json/json.h"

namespace interlock::object_reader_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The messages that `read` adds when it reads `text`, joined by line feeds.
std::string messages(std::string_view text, const std::function<void(ObjectReader&)>& read) {
  const JsonValue root = parse_json(text, "x.json");
  Diagnostics diagnostics;
  ObjectReader reader({&root, ""}, diagnostics);
  read(reader);
  std::string joined;
  for (const std::string& message : diagnostics.messages()) {
    joined += (joined.empty() ? "" : "\n") + message;
  }
  return joined;
}

TEST_CASE("values that fit are returned, absent ones have their default") {
  const auto read = [](ObjectReader& reader) {
    CHECK(reader.boolean("flag", false));
    CHECK(reader.number("fraction", 0, 0, 1) == 0.5);
    CHECK(reader.count("steps", 1) == 8);
    CHECK(reader.text("name", "") == "n");
    CHECK(reader.seconds("time", Seconds(1)) == Seconds(3e-6));
    CHECK(reader.bytes("size", Bytes(1)) == Bytes(0));
    CHECK(reader.bytes_per_second("link", BytesPerSecond(1)) == BytesPerSecond(450e9));
    CHECK(reader.flops_per_second("peak", FlopsPerSecond(1)) == FlopsPerSecond(989e12));
    CHECK(reader.choice("kind", {"global", "local"}, 0) == 1);
    CHECK(reader.require("name", "a name")->path == "/name");
    CHECK(reader.boolean("no flag", true));
    CHECK(reader.number("no fraction", 0.25, 0, 1) == 0.25);
    CHECK(reader.count("no steps", 3) == 3);
    CHECK(reader.text("no name", "default") == "default");
    CHECK(reader.seconds("no time", Seconds(1)) == Seconds(1));
    CHECK(reader.choice("no kind", {"global", "local"}, -1) == -1);
    CHECK_FALSE(reader.get("nothing").has_value());
    reader.finish();
  };
  CHECK(messages(R"({"flag": true, "fraction": 0.5, "steps": 8, "name": "n", "time": "3 us",
                     "size": "0 B", "link": "450 GB/s", "peak": "989 TFLOP/s", "kind": "local"})",
                 read) == "");
}

TEST_CASE("a value of the wrong type is named and the default returned") {
  const auto read = [](ObjectReader& reader) {
    CHECK(reader.boolean("a", true));
    CHECK(reader.number("b", 0.5, 0, 1) == 0.5);
    CHECK(reader.count("c", 7) == 7);
    CHECK(reader.text("d", "default") == "default");
    CHECK(reader.seconds("e", Seconds(5)) == Seconds(5));
    CHECK(reader.choice("f", {"x", "y"}, 1) == 1);
  };
  CHECK(
      messages("{\"a\": \"yes\",\n\"b\": true,\n\"c\": [1],\n\"d\": 2.5,\n\"e\": {},\n\"f\": null}",
               read) ==
      "x.json:1: /a: expected true or false, got \"yes\"\n"
      "x.json:2: /b: expected a number from 0 to 1, got true\n"
      "x.json:3: /c: expected a whole number from 1 to 1000000000, got an array\n"
      "x.json:4: /d: expected a string, got 2.5\n"
      "x.json:5: /e: wrong type; expected a time such as \"3 us\", got an object\n"
      "x.json:6: /f: wrong type; expected a name (known: x, y), got null");
}

TEST_CASE("numbers out of range are shown with the bounds that exist") {
  const auto read = [](ObjectReader& reader) {
    reader.number("a", 0, 0, 1);
    reader.number("b", 0, 0.5, kInfinity);
    reader.number("c", 0, -kInfinity, 0);
    reader.number("d", 0, -kInfinity, kInfinity);
  };
  CHECK(messages(R"({"a": 1.5, "b": 0, "c": 1e-9, "d": "x"})", read) ==
        "x.json:1: /a: expected a number from 0 to 1, got 1.5\n"
        "x.json:1: /b: expected a number of at least 0.5, got 0\n"
        "x.json:1: /c: expected a number of at most 0, got 1e-09\n"
        "x.json:1: /d: expected a number, got \"x\"");
}

TEST_CASE("counts are whole numbers in range") {
  for (const char* wrong : {"2.5", "0", "1001", "-1", "1e+300", "0.9999999"}) {
    const auto read = [](ObjectReader& reader) { CHECK(reader.count("a", 7, 1, 1000) == 7); };
    CHECK(messages("{\"a\": " + std::string(wrong) + "}", read) ==
          "x.json:1: /a: expected a whole number from 1 to 1000, got " + std::string(wrong));
  }
  const auto widest = [](ObjectReader& reader) {
    CHECK(reader.count("a", 0, INT_MIN, INT_MAX) == INT_MAX);
    CHECK(reader.count("b", 0, INT_MIN, INT_MAX) == INT_MIN);
    CHECK(reader.count("c", 0, 1, 1000) == 1000);
  };
  CHECK(messages(R"({"a": 2147483647, "b": -2147483648, "c": 1e3})", widest) == "");
}

TEST_CASE("quantities want a number with the right unit") {
  const auto read = [](ObjectReader& reader) {
    CHECK(reader.bytes("a", Bytes(1)) == Bytes(1));
    reader.bytes_per_second("b", BytesPerSecond(1));
    reader.seconds("c", Seconds());
    reader.flops_per_second("d", FlopsPerSecond(1));
    reader.bytes("e", Bytes());
  };
  CHECK(
      messages(R"({"a": 80, "b": "3 us", "c": "1e999 s", "d": "989 TFLOPS", "e": "1 Gb"})", read) ==
      "x.json:1: /a: a plain number has no unit; expected a size such as \"80 GiB\", got 80\n"
      "x.json:1: /b: wrong unit; expected a bandwidth such as \"450 GB/s\", got \"3 us\"\n"
      "x.json:1: /c: not a number with a known unit; expected a time such as \"3 us\", got "
      "\"1e999 s\"\n"
      "x.json:1: /d: not a number with a known unit; expected a rate such as \"989 TFLOP/s\", "
      "got \"989 TFLOPS\" (did you mean \"989 TFLOP/s\"?)\n"
      "x.json:1: /e: not a number with a known unit; expected a size such as \"80 GiB\", got "
      "\"1 Gb\"");
}

TEST_CASE("times and sizes may be zero, rates may not, and nothing is negative") {
  const auto read = [](ObjectReader& reader) {
    CHECK(reader.seconds("a", Seconds(1)) == Seconds(0));
    reader.seconds("b", Seconds());
    reader.bytes("c", Bytes());
    reader.bytes_per_second("d", BytesPerSecond(1));
    reader.flops_per_second("e", FlopsPerSecond(1));
  };
  CHECK(messages(R"({"a": "0 s", "b": "-1 us", "c": "-1 B", "d": "0 B/s", "e": "-1 FLOP/s"})",
                 read) ==
        "x.json:1: /b: must not be negative; expected a time such as \"3 us\", got \"-1 us\"\n"
        "x.json:1: /c: must not be negative; expected a size such as \"80 GiB\", got \"-1 B\"\n"
        "x.json:1: /d: must be above zero; expected a bandwidth such as \"450 GB/s\", got "
        "\"0 B/s\"\n"
        "x.json:1: /e: must not be negative; expected a rate such as \"989 TFLOP/s\", got "
        "\"-1 FLOP/s\"");
}

TEST_CASE("an unknown name is answered with the known ones and the likely one") {
  const auto read = [](ObjectReader& reader) {
    CHECK(reader.choice("a", {"naive", "gpipe", "1f1b"}, 2) == 2);
    reader.choice("b", {"naive", "gpipe", "1f1b"}, 0);
    reader.choice("c", {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"}, 0);
  };
  CHECK(messages(R"({"a": "1f1b-x", "b": "zebra", "c": "unlike"})", read) ==
        "x.json:1: /a: unknown name \"1f1b-x\"; known: naive, gpipe, 1f1b (did you mean "
        "\"1f1b\"?)\n"
        "x.json:1: /b: unknown name \"zebra\"; known: naive, gpipe, 1f1b\n"
        "x.json:1: /c: unknown name \"unlike\"; known: a, b, c, d, e, f, g, h, i, j, k, ...");
}

TEST_CASE("keys that are not asked for are reported with the nearest known one") {
  const auto read = [](ObjectReader& reader) {
    reader.count("micro_batches", 1);
    reader.get("steps");
    reader.get("steps");
    reader.finish();
  };
  CHECK(messages("{\"steps\": 1,\n\"micro_batchs\": 2,\n\"a/b\": 3}", read) ==
        "x.json:2: /micro_batchs: unknown key; did you mean \"micro_batches\"?\n"
        "x.json:3: /a~1b: unknown key; known: micro_batches, steps");
}

TEST_CASE("an object that knows no key says so") {
  CHECK(messages(R"({"a": 1})", [](ObjectReader& reader) { reader.finish(); }) ==
        "x.json:1: /a: unknown key; no key is known here");
}

TEST_CASE("a key that must be there is missed where its object starts") {
  const auto read = [](ObjectReader& outer) {
    ObjectReader inner(*outer.get("a"), outer.diagnostics());
    CHECK_FALSE(inner.require("model", "a model name").has_value());
  };
  CHECK(messages("{\n\"a\": {\n}}", read) ==
        "x.json:2: /a: missing key \"model\"; expected a model name");
}

TEST_CASE("what is no object is reported once and then read as if empty") {
  const auto read = [](ObjectReader& reader) {
    CHECK(reader.count("a", 7) == 7);
    CHECK_FALSE(reader.require("b", "a thing").has_value());
    reader.finish();
  };
  CHECK(messages("[1]", read) == "x.json:1: expected an object, got an array");
}

TEST_CASE("long texts and control characters are tamed in messages") {
  const auto read = [](ObjectReader& reader) { reader.count("a", 1); };
  const std::string shown = messages("{\"a\": \"" + std::string(10'000, 'x') + "\"}", read);
  CHECK(shown.size() < 200);
  CHECK(shown.ends_with("xxx...\""));
  CHECK(messages(R"({"a": "\u001b[31m"})", read).ends_with("got \"\\u001b[31m\""));
}

TEST_CASE("all mistakes of an object are reported together, in the order of reading") {
  const auto read = [](ObjectReader& reader) {
    reader.seconds("b", Seconds());
    reader.count("a", 1);
    reader.finish();
  };
  CHECK(messages("{\"a\": 0,\n\"b\": 1,\n\"c\": 2}", read) ==
        "x.json:2: /b: a plain number has no unit; expected a time such as \"3 us\", got 1\n"
        "x.json:1: /a: expected a whole number from 1 to 1000000000, got 0\n"
        "x.json:3: /c: unknown key; known: b, a");
}

TEST_CASE("a million unknown keys are counted, not compared") {
  std::string text = "{\"k\": 0";
  for (int i = 0; i < 300'000; ++i) text += ",\"key_number_" + std::to_string(i) + "\":0";
  const auto read = [](ObjectReader& reader) {
    for (int i = 0; i < 20; ++i) reader.get("key_name_" + std::to_string(i));
    reader.finish();
  };
  const std::string shown = messages(text + "}", read);
  CHECK(std::count(shown.begin(), shown.end(), '\n') == 99);
}

}  // namespace
}  // namespace interlock::object_reader_test
