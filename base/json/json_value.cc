// Finds, names and replaces values of a JSON tree.
// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/json/json.h"
#include "base/text.h"

namespace interlock {
namespace {

using Kind = JsonValue::Kind;

[[noreturn]] void refuse(const std::string& origin, std::string_view path,
                         const std::string& message) {
  Diagnostics diagnostics;
  diagnostics.add(origin, 0, path, message);
  diagnostics.throw_if_any();
  CHECK(false, "a mistake was added");
}

std::vector<std::string_view> steps_of(std::string_view dotted_path, const std::string& origin) {
  constexpr std::size_t kMostSteps = 64;
  std::vector<std::string_view> steps;
  while (true) {
    const std::size_t dot = dotted_path.find('.');
    steps.push_back(dotted_path.substr(0, dot));
    if (steps.back().empty() || steps.size() > kMostSteps) {
      refuse(origin, "", "not a path; expected up to 64 keys with dots between, such as \"a.b.0\"");
    }
    if (dot == std::string_view::npos) return steps;
    dotted_path.remove_prefix(dot + 1);
  }
}

std::optional<std::size_t> index_of(std::string_view step, std::size_t size) {
  std::size_t index = 0;
  const char* end = step.data() + step.size();
  const auto [rest, failed] = std::from_chars(step.data(), end, index);
  const bool canonical = step == "0" || !step.starts_with('0');
  if (failed != std::errc{} || rest != end || !canonical || index >= size) return std::nullopt;
  return index;
}

/// Returns one step down from `parent`, which is at `path`; a member that is not there is made.
JsonValue& step_into(JsonValue& parent, std::string_view step, const std::string& path,
                     const std::string& origin) {
  if (parent.kind == Kind::Object) {
    if (JsonValue* member = parent.find(step)) return *member;
    JsonValue made = {.kind = Kind::Object, .file = std::make_shared<const std::string>(origin)};
    parent.members.push_back({std::string(step), std::move(made)});
    return parent.members.back().second;
  }
  if (parent.kind != Kind::Array) {
    refuse(origin, path,
           "nothing can be set inside; expected an object or an array, got " + described(parent));
  }
  const std::size_t size = parent.items.size();
  const std::optional<std::size_t> index = index_of(step, size);
  if (!index) {
    refuse(origin, path,
           size == 0 ? "the array is empty; expected a path that ends at the array, got index " +
                           in_quotes(step)
                     : "no such element; expected an index from 0 to " + std::to_string(size - 1) +
                           ", got " + in_quotes(step));
  }
  return parent.items[*index];
}

/// Returns true if both objects name their kind and the kinds differ: then they share no keys.
bool differ_in_kind(const JsonValue& target, const JsonValue& value) {
  const JsonValue* old = target.find("kind");
  const JsonValue* kind = value.find("kind");
  if (!old || !kind || old->kind != Kind::String || kind->kind != Kind::String) return false;
  return old->text != kind->text;
}

/// Null removes the member, as in a JSON merge patch (RFC 7396).
void set_member(JsonValue& object, std::string_view key, JsonValue value) {
  if (value.kind == Kind::Null) {
    std::erase_if(object.members, [&](const auto& member) { return member.first == key; });
  } else if (JsonValue* old = object.find(key)) {
    merge_json(*old, std::move(value));
  } else {
    object.members.push_back({std::string(key), std::move(value)});
  }
}

void forget_lines(JsonValue& value) {
  value.line = 0;
  for (JsonValue& item : value.items) forget_lines(item);
  for (auto& [key, member] : value.members) forget_lines(member);
}

std::string written(double number) {
  char digits[32];
  constexpr double kWholeBelow = 1e15;
  const bool whole = number == std::floor(number) && std::abs(number) < kWholeBelow;
  const auto end =
      whole ? std::to_chars(digits, digits + sizeof digits, static_cast<long long>(number))
            : std::to_chars(digits, digits + sizeof digits, number);
  return std::string(digits, end.ptr);
}

}  // namespace

// By default it would be the same, but clang 14 crashes on that of a type that holds itself.
bool JsonValue::operator==(const JsonValue& other) const {
  const auto tied = [](const JsonValue& value) {
    const auto& [kind, boolean, number, text, items, members, file, line, written] = value;
    return std::tie(kind, boolean, number, text, items, members, file, line, written);
  };
  return tied(*this) == tied(other);
}

bool JsonNode::operator==(const JsonNode& other) const {
  return path == other.path && *value == *other.value;
}

const JsonValue* JsonValue::find(std::string_view key) const {
  for (const auto& [name, member] : members) {
    if (name == key) return &member;
  }
  return nullptr;
}

JsonValue* JsonValue::find(std::string_view key) {
  return const_cast<JsonValue*>(std::as_const(*this).find(key));
}

std::string described(const JsonValue& value) {
  switch (value.kind) {
    case Kind::Null:
      return "null";
    case Kind::Boolean:
      return value.boolean ? "true" : "false";
    case Kind::Number:
      return written(value.number);
    case Kind::String:
      return in_quotes(value.text);
    case Kind::Array:
      return "an array";
    case Kind::Object:
      return "an object";
  }
  return "nothing";
}

std::string json_pointer(std::string_view parent, std::string_view key) {
  std::string pointer = std::string(parent) + "/";
  for (const char c : key) {
    if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer += c;
    }
  }
  return pointer;
}

JsonNode JsonNode::child(std::string_view key) const {
  const JsonValue* member = value->find(key);
  CHECK(member != nullptr, "the object at " + path + " has a member " + in_quotes(key));
  return {member, json_pointer(path, key)};
}

JsonNode JsonNode::item(std::size_t index) const {
  CHECK(index < value->items.size(), "the array at " + path + " is long enough");
  return {&value->items[index], json_pointer(path, std::to_string(index))};
}

void merge_json(JsonValue& target, JsonValue value) {
  const bool objects = target.kind == Kind::Object && value.kind == Kind::Object;
  if (!objects || differ_in_kind(target, value)) {
    target = std::move(value);
    return;
  }
  for (auto& [key, member] : value.members) set_member(target, key, std::move(member));
}

void set_json(JsonValue& root, std::string_view dotted_path, const JsonValue& value,
              const std::string& origin) {
  JsonValue copy = value;  // it may lie inside `root`
  std::vector<std::string_view> steps = steps_of(dotted_path, origin);
  const std::string_view last = steps.back();
  steps.pop_back();
  JsonValue* target = &root;
  std::string path;
  for (const std::string_view step : steps) {
    target = &step_into(*target, step, path, origin);
    path = json_pointer(path, step);
  }
  if (target->kind == Kind::Object) {
    set_member(*target, last, std::move(copy));
  } else {
    merge_json(step_into(*target, last, path, origin), std::move(copy));
  }
}

JsonValue parse_override(std::string_view text, const std::string& origin) {
  JsonValue value;
  try {
    value = parse_json(text, origin);
  } catch (const Error&) {
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t length = utf8_length(rest);
      if (length == 0) refuse(origin, "", "not a text; expected UTF-8");
      rest.remove_prefix(length);
    }
    value.kind = Kind::String;
    value.text = text;
    value.file = std::make_shared<const std::string>(origin);
  }
  forget_lines(value);
  return value;
}

bool holds_text(const JsonValue* value) { return value != nullptr && value->kind == Kind::String; }

JsonValue json_text(const std::string& text) { return {.kind = Kind::String, .text = text}; }
JsonValue json_number(double number) { return {.kind = Kind::Number, .number = number}; }
JsonValue json_boolean(bool boolean) { return {.kind = Kind::Boolean, .boolean = boolean}; }

JsonValue json_list(std::vector<JsonValue> items) {
  return {.kind = Kind::Array, .items = std::move(items)};
}

JsonValue json_texts(const std::vector<std::string>& texts) {
  JsonValue list = {.kind = Kind::Array};
  for (const std::string& text : texts) list.items.push_back(json_text(text));
  return list;
}

JsonValue json_object(std::vector<JsonMember> members) {
  return {.kind = Kind::Object, .members = std::move(members)};
}

void place_at(const JsonValue& where, JsonValue& value) {
  value.file = where.file;
  value.line = where.line;
  for (JsonValue& item : value.items) place_at(where, item);
  for (JsonMember& member : value.members) place_at(where, member.second);
}

}  // namespace interlock
