// Overrides: what --set changes, and what it refuses.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/json/json.h"
#include "tests/base/thrown.h"

namespace interlock::json_value_test {
namespace {

using Kind = JsonValue::Kind;

constexpr const char* kOrigin = "--set P=V";

/// A compact text of a tree, to compare whole trees at once.
std::string text_of(const JsonValue& value) {
  const bool is_array = value.kind == Kind::Array;
  if (!is_array && value.kind != Kind::Object) return described(value);
  std::string text;
  const auto add = [&text](const std::string& part) {
    if (!text.empty()) text += ',';
    text += part;
  };
  for (const JsonValue& item : value.items) add(text_of(item));
  for (const auto& [key, member] : value.members) add(key + ":" + text_of(member));
  return (is_array ? '[' : '{') + text + (is_array ? ']' : '}');
}

std::string after_set(std::string_view document, std::string_view path, std::string_view value) {
  JsonValue root = parse_json(document, "x.json");
  set_json(root, path, parse_override(value, kOrigin), kOrigin);
  return text_of(root);
}

std::string refusal(std::string_view document, std::string_view path) {
  return thrown([&] { after_set(document, path, "1"); });
}

TEST_CASE("a value is replaced, added or made with the objects above it") {
  CHECK(after_set(R"({"a": {"b": 1}})", "a.b", "2") == "{a:{b:2}}");
  CHECK(after_set(R"({"a": {"b": 1}})", "a.c", "2") == "{a:{b:1,c:2}}");
  CHECK(after_set(R"({"a": {"b": 1}})", "a", "2") == "{a:2}");
  CHECK(after_set("{}", "a.b.c", "true") == "{a:{b:{c:true}}}");
  CHECK(after_set("{}", "a.0", "1") == "{a:{0:1}}");
}

TEST_CASE("a number selects an element of an array, a name of an object") {
  CHECK(after_set(R"({"a": [1, {"b": 2}]})", "a.0", "5") == "{a:[5,{b:2}]}");
  CHECK(after_set(R"({"a": [1, {"b": 2}]})", "a.1.b", "5") == "{a:[1,{b:5}]}");
  CHECK(after_set("[[1, 2], [3]]", "0.1", "5") == "[[1,5],[3]]");
  CHECK(after_set(R"({"0": 1})", "0", "5") == "{0:5}");
}

TEST_CASE("an object is merged over an object, deeply, and replaces anything else") {
  CHECK(after_set(R"({"a": {"b": {"c": 1, "d": 2}, "e": 3}})", "a", R"({"b": {"c": 9}, "f": 4})") ==
        "{a:{b:{c:9,d:2},e:3,f:4}}");
  CHECK(after_set(R"({"a": "global"})", "a", R"({"kind": "local"})") == "{a:{kind:\"local\"}}");
  CHECK(after_set(R"({"a": {"b": 1}})", "a", "[1]") == "{a:[1]}");
  CHECK(after_set(R"({"a": [1, 2]})", "a", "[3]") == "{a:[3]}");
  CHECK(after_set("{}", "a", R"({"b": {"c": 1}})") == "{a:{b:{c:1}}}");
}

TEST_CASE("an object of another kind replaces, since it has other keys") {
  const std::string n_wise = R"({"s": {"kind": "interlocking", "n_wise": 3}})";
  CHECK(after_set(n_wise, "s", R"({"kind": "local"})") == "{s:{kind:\"local\"}}");
  CHECK(after_set(n_wise, "s", R"({"kind": "interlocking", "heads": "all"})") ==
        "{s:{kind:\"interlocking\",n_wise:3,heads:\"all\"}}");
  CHECK(after_set(R"({"t": {"s": {"kind": "a", "x": 1}, "y": 2}})", "t",
                  R"({"s": {"kind": "b"}})") == "{t:{s:{kind:\"b\"},y:2}}");
  // Only one of them says what it is: the other may be of its kind.
  CHECK(after_set(R"({"s": {"in_flight": 2}})", "s", R"({"kind": "eager"})") ==
        "{s:{in_flight:2,kind:\"eager\"}}");
  CHECK(after_set(R"({"s": {"kind": "eager"}})", "s", R"({"in_flight": 2})") ==
        "{s:{kind:\"eager\",in_flight:2}}");
}

TEST_CASE("null removes a member of an object, and replaces an element of an array") {
  CHECK(after_set(R"({"a": {"b": 1, "c": 2}})", "a.b", "null") == "{a:{c:2}}");
  CHECK(after_set(R"({"a": 1})", "b", "null") == "{a:1}");
  CHECK(after_set(R"({"a": {"b": 1, "c": 2}})", "a", R"({"b": null, "d": 3})") == "{a:{c:2,d:3}}");
  CHECK(after_set("[1, 2]", "0", "null") == "[null,2]");
}

TEST_CASE("paths that lead nowhere are refused by name") {
  CHECK(refusal(R"({"a": 3})", "a.b") ==
        "--set P=V: /a: nothing can be set inside; expected an object or an array, got 3");
  CHECK(refusal(R"({"a": null})", "a.b") ==
        "--set P=V: /a: nothing can be set inside; expected an object or an array, got null");
  CHECK(refusal(R"({"a": {"b": [1, 2]}})", "a.b.2") ==
        "--set P=V: /a/b: no such element; expected an index from 0 to 1, got \"2\"");
  for (const char* index : {"x", "-1", "01", "1x", "99999999999999999999", "+1", "0x1", " 1"}) {
    CAPTURE(index);
    CHECK(refusal("[1, 2]", index) ==
          "--set P=V: no such element; expected an index from 0 to 1, got \"" + std::string(index) +
              "\"");
  }
  CHECK(refusal("[]", "0") ==
        "--set P=V: the array is empty; expected a path that ends at the array, got index \"0\"");
}

TEST_CASE("what is no path is refused") {
  for (const char* path : {"", ".", "a.", ".a", "a..b"}) {
    CAPTURE(path);
    CHECK(refusal("{}", path) ==
          "--set P=V: not a path; expected up to 64 keys with dots between, such as \"a.b.0\"");
  }
  std::string long_path = "a";
  for (int i = 0; i < 100'000; ++i) long_path += ".a";
  CHECK(refusal("{}", long_path).starts_with("--set P=V: not a path"));
}

TEST_CASE("a value may be taken from the tree that it is set in") {
  JsonValue root = parse_json(R"({"a": {"x": 1}})", "x.json");
  set_json(root, "b.c.d", *root.find("a"), kOrigin);
  CHECK(text_of(root) == "{a:{x:1},b:{c:{d:{x:1}}}}");
  set_json(root, "a.y", *root.find("a"), kOrigin);
  CHECK(text_of(*root.find("a")) == "{x:1,y:{x:1}}");
}

TEST_CASE("an override is JSON if it parses, else a string") {
  const auto read = [](std::string_view text) { return text_of(parse_override(text, kOrigin)); };
  CHECK(read("12") == "12");
  CHECK(read("true") == "true");
  CHECK(read("[2, 4]") == "[2,4]");
  CHECK(read(R"({"kind": "local"})") == "{kind:\"local\"}");
  CHECK(read("\"12\"") == "\"12\"");
  CHECK(read("80 GiB") == "\"80 GiB\"");
  CHECK(read("1f1b") == "\"1f1b\"");
  CHECK(read("") == "\"\"");
  CHECK(read("[2, 4") == "\"[2, 4\"");
  CHECK(read("1e999") == "\"1e999\"");
  CHECK(thrown([] { parse_override("a\xff", kOrigin); }) ==
        "--set P=V: not a text; expected UTF-8");
}

TEST_CASE("mistakes in an override are reported at the option") {
  JsonValue root = parse_json("{\n\"a\": {\"b\": 1}}", "x.json");
  const std::string origin = "--set a={\"b\": [2]}";
  set_json(root, "a", parse_override(R"({"b": [2]})", origin), origin);
  set_json(root, "made.new", parse_override("3", "--set made.new=3"), "--set made.new=3");
  Diagnostics diagnostics;
  const JsonNode document = {&root, ""};
  read_boolean(document.child("a").child("b").item(0), diagnostics);
  read_boolean(document.child("made"), diagnostics);
  read_boolean(document.child("a"), diagnostics);
  REQUIRE(diagnostics.messages().size() == 3);
  CHECK(diagnostics.messages()[0] == "--set a={\"b\": [2]}: /a/b/0: expected true or false, got 2");
  CHECK(diagnostics.messages()[1] ==
        "--set made.new=3: /made: expected true or false, got an object");
  CHECK(diagnostics.messages()[2] == "x.json:2: /a: expected true or false, got an object");
}

TEST_CASE("pointers escape what would look like a step") {
  CHECK(json_pointer("/a", "b") == "/a/b");
  CHECK(json_pointer("", "b/c~d") == "/b~1c~0d");
}

}  // namespace
}  // namespace interlock::json_value_test
