// Setting files: yaml-cpp's and toml++'s values become ours.
// SPDX-License-Identifier: Apache-2.0
#include "reports/imports/setting_files.h"

#include <toml++/toml.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace interlock {
namespace {

constexpr int kDeepest = 64;
constexpr std::size_t kMostValues = 100'000;

/// Makes JSON values that remember `file` and the line of each.
class Converter {
 public:
  explicit Converter(const std::string& file) : file_(std::make_shared<const std::string>(file)) {}

  JsonValue of_yaml(const YAML::Node& node, int depth = 0) {
    JsonValue value = made(node.Mark().line + 1, depth);
    if (node.IsSequence()) {
      value.kind = JsonValue::Kind::Array;
      for (const YAML::Node& item : node) value.items.push_back(of_yaml(item, depth + 1));
    } else if (node.IsMap()) {
      value.kind = JsonValue::Kind::Object;
      for (const auto& entry : node) {
        const int line = entry.first.Mark().line + 1;
        if (!entry.first.IsScalar()) fail(line, "a key that is no text");
        value.members.push_back({entry.first.Scalar(), of_yaml(entry.second, depth + 1)});
        value.members.back().second.line = line;
      }
    } else if (node.IsScalar()) {
      set_plain(value, node.Scalar(), node.Tag() == "!");
    }
    return value;
  }

  JsonValue of_toml(const toml::node& node, int depth = 0) {
    JsonValue value = made(static_cast<int>(node.source().begin.line), depth);
    if (const toml::table* table = node.as_table()) {
      value.kind = JsonValue::Kind::Object;
      for (const auto& [key, item] : *table) {
        value.members.push_back({std::string(key.str()), of_toml(item, depth + 1)});
      }
    } else if (const toml::array* array = node.as_array()) {
      value.kind = JsonValue::Kind::Array;
      for (const toml::node& item : *array) value.items.push_back(of_toml(item, depth + 1));
    } else if (const auto text = node.value_exact<std::string>()) {
      value.kind = JsonValue::Kind::String;
      value.text = *text;
    } else if (const auto flag = node.value_exact<bool>()) {
      value.kind = JsonValue::Kind::Boolean;
      value.boolean = *flag;
    } else if (const auto number = node.value<double>()) {
      value.kind = JsonValue::Kind::Number;
      value.number = *number;
    }
    return value;
  }

  [[noreturn]] void fail(int line, const std::string& message) const {
    throw Error(*file_ + ":" + std::to_string(line) + ": " + message);
  }

 private:
  JsonValue made(int line, int depth) {
    if (depth > kDeepest) fail(line, "nested over " + std::to_string(kDeepest) + " deep");
    if (++values_ > kMostValues) fail(line, "more than " + std::to_string(kMostValues) + " values");
    JsonValue value;
    value.file = file_;
    value.line = line;
    return value;
  }

  /// A scalar of YAML that is not in quotes may be a number, a truth or nothing.
  static void set_plain(JsonValue& value, const std::string& text, bool quoted) {
    const auto is = [&](std::initializer_list<const char*> words) {
      return !quoted && std::find(words.begin(), words.end(), text) != words.end();
    };
    double number = 0;
    const char* end = text.data() + text.size();
    const auto [rest, failed] = std::from_chars(text.data(), end, number);
    if (is({"null", "Null", "~", ""})) {
      value.kind = JsonValue::Kind::Null;
    } else if (is({"true", "True", "false", "False"})) {
      value.kind = JsonValue::Kind::Boolean;
      value.boolean = text.front() == 't' || text.front() == 'T';
    } else if (!quoted && failed == std::errc() && rest == end && std::isfinite(number)) {
      value.kind = JsonValue::Kind::Number;
      value.number = number;
    } else {
      value.kind = JsonValue::Kind::String;
      value.text = text;
    }
  }

  std::shared_ptr<const std::string> file_;
  std::size_t values_ = 0;
};

JsonValue read_yaml(const std::string& text, const std::string& file) {
  Converter converter(file);
  try {
    return converter.of_yaml(YAML::Load(text));
  } catch (const YAML::Exception& wrong) {
    converter.fail(wrong.mark.line + 1, "not YAML: " + wrong.msg);
  }
}

JsonValue read_toml(const std::string& text, const std::string& file) {
  Converter converter(file);
  try {
    return converter.of_toml(toml::parse(text));
  } catch (const toml::parse_error& wrong) {
    converter.fail(static_cast<int>(wrong.source().begin.line),
                   "not TOML: " + std::string(wrong.description()));
  }
}

bool is_plain(const JsonValue& value) {
  return value.kind != JsonValue::Kind::Object && value.kind != JsonValue::Kind::Array;
}

}  // namespace

JsonValue read_settings_file(const std::string& path) {
  if (path.ends_with(".json")) return read_json_file(path);
  if (path.ends_with(".toml")) return read_toml(read_file(path), path);
  if (path.ends_with(".yaml") || path.ends_with(".yml")) return read_yaml(read_file(path), path);
  throw Error(path + ": expected a name that ends with .yaml, .yml, .toml or .json");
}

std::string setting_text(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::Null:
      return "null";
    case JsonValue::Kind::Boolean:
      return value.boolean ? "true" : "false";
    case JsonValue::Kind::Number: {
      char digits[32];
      const auto end = std::to_chars(digits, digits + sizeof digits, value.number).ptr;
      const bool whole = value.number == std::floor(value.number) && std::abs(value.number) < 1e15;
      return whole ? std::to_string(static_cast<long long>(value.number))
                   : std::string(digits, end);
    }
    case JsonValue::Kind::String:
      return value.text;
    default: {
      std::string words;
      for (const JsonValue& item : value.items) words += setting_text(item) + " ";
      return words;
    }
  }
}

void say_all(Settings& settings, const JsonValue& value, const std::string& prefix) {
  const std::string stem = prefix.empty() ? "" : prefix + ".";
  if (value.kind == JsonValue::Kind::Object) {
    for (const auto& [key, item] : value.members) say_all(settings, item, stem + key);
  } else if (is_plain(value) || std::all_of(value.items.begin(), value.items.end(), is_plain)) {
    settings.say(prefix, setting_text(value), value.line, prefix);
  } else {
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      say_all(settings, value.items[i], stem + std::to_string(i));
    }
  }
}

}  // namespace interlock
