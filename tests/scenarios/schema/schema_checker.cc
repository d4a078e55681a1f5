// A validator for the part of JSON Schema that our schema uses; it shares nothing with the loader.
// SPDX-License-Identifier: Apache-2.0
#include "tests/scenarios/schema/schema_checker.h"

#include <cmath>
#include <regex>
#include <set>
#include <stdexcept>

namespace interlock {
namespace {

using Kind = JsonValue::Kind;

bool equal(const JsonValue& a, const JsonValue& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == Kind::String) return a.text == b.text;
  if (a.kind == Kind::Number) return a.number == b.number;
  if (a.kind == Kind::Boolean) return a.boolean == b.boolean;
  if (a.kind == Kind::Null) return true;
  throw std::logic_error("lists and objects are not compared");
}

bool is_of_type(const JsonValue& value, const std::string& type) {
  if (type == "object") return value.kind == Kind::Object;
  if (type == "array") return value.kind == Kind::Array;
  if (type == "string") return value.kind == Kind::String;
  if (type == "boolean") return value.kind == Kind::Boolean;
  if (type == "null") return value.kind == Kind::Null;
  if (type == "number") return value.kind == Kind::Number;
  if (type == "integer") {
    return value.kind == Kind::Number && std::floor(value.number) == value.number;
  }
  throw std::logic_error("unknown type " + type);
}

class Checker {
 public:
  explicit Checker(const JsonValue& root) : root_(root) {}

  std::string problem(const JsonValue& schema, const JsonValue& value, const std::string& path) {
    if (const JsonValue* reference = schema.find("$ref")) {
      if (reference->text == "#") return problem(root_, value, path);
      const std::string name = reference->text.substr(reference->text.rfind('/') + 1);
      return problem(*root_.find("definitions")->find(name), value, path);
    }
    for (const auto& [keyword, rule] : schema.members) {
      std::string found = keyword_problem({keyword, rule, schema}, value, path);
      if (!found.empty()) return found;
    }
    return "";
  }

 private:
  struct Rule {
    const std::string& keyword;
    const JsonValue& rule;
    const JsonValue& schema;
  };

  std::string keyword_problem(const Rule& rule, const JsonValue& value, const std::string& path) {
    static const std::set<std::string> silent = {"description", "default",       "examples",
                                                 "$schema",     "title",         "definitions",
                                                 "$id",         "allowComments", "$comment"};
    const std::string& keyword = rule.keyword;
    if (silent.count(keyword) != 0) return "";
    if (keyword == "anyOf" || keyword == "allOf") return combined(rule, value, path);
    if (keyword == "not") {
      return problem(rule.rule, value, path).empty() ? path + ": what may not be together" : "";
    }
    if (keyword == "type" || keyword == "enum" || keyword == "const") {
      return same(rule, value) ? "" : path + ": no such value: " + described(value);
    }
    if (value.kind == Kind::Object || keyword == "properties" || keyword == "required" ||
        keyword == "additionalProperties" || keyword == "propertyNames") {
      return value.kind == Kind::Object ? of_object(rule, value, path) : "";
    }
    if (keyword == "items" || keyword == "minItems" || keyword == "maxItems" ||
        keyword == "uniqueItems") {
      return value.kind == Kind::Array ? of_list(rule, value, path) : "";
    }
    return of_scalar(rule, value) ? "" : path + ": out of " + keyword + ": " + described(value);
  }

  static bool same(const Rule& rule, const JsonValue& value) {
    if (rule.keyword == "const") return equal(rule.rule, value);
    if (rule.keyword == "type" && rule.rule.kind == Kind::String) {
      return is_of_type(value, rule.rule.text);
    }
    for (const JsonValue& one : rule.rule.items) {
      if (rule.keyword == "type" ? is_of_type(value, one.text) : equal(one, value)) return true;
    }
    return false;
  }

  std::string combined(const Rule& rule, const JsonValue& value, const std::string& path) {
    std::string last;
    for (const JsonValue& one : rule.rule.items) {
      std::string found = problem(one, value, path);
      if (found.empty() && rule.keyword == "anyOf") return "";
      if (!found.empty() && rule.keyword == "allOf") return found;
      last = found;
    }
    return last;
  }

  std::string of_object(const Rule& rule, const JsonValue& value, const std::string& path) {
    for (const JsonValue& key : rule.rule.items) {  // required
      if (rule.keyword == "required" && !value.find(key.text)) return path + ": no " + key.text;
    }
    const JsonValue* known = rule.schema.find("properties");
    for (const auto& [key, member] : value.members) {
      const std::string below = json_pointer(path, key);
      std::string found;
      if (rule.keyword == "properties") {
        if (const JsonValue* own = rule.rule.find(key)) found = problem(*own, member, below);
      } else if (rule.keyword == "additionalProperties" && !(known && known->find(key))) {
        if (rule.rule.kind == Kind::Object) found = problem(rule.rule, member, below);
        if (rule.rule.kind == Kind::Boolean && !rule.rule.boolean) found = below + ": unknown";
      } else if (rule.keyword == "propertyNames") {
        found = problem(rule.rule, {.kind = Kind::String, .text = key}, below);
      }
      if (!found.empty()) return found;
    }
    return "";
  }

  std::string of_list(const Rule& rule, const JsonValue& value, const std::string& path) {
    const auto size = static_cast<double>(value.items.size());
    if (rule.keyword == "minItems" && size < rule.rule.number) return path + ": too short";
    if (rule.keyword == "maxItems" && size > rule.rule.number) return path + ": too long";
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      if (rule.keyword == "items") {
        const std::string below = json_pointer(path, std::to_string(i));
        std::string found = problem(rule.rule, value.items[i], below);
        if (!found.empty()) return found;
      }
      for (std::size_t j = 0; rule.keyword == "uniqueItems" && j < i; ++j) {
        if (equal(value.items[i], value.items[j])) return path + ": twice";
      }
    }
    return "";
  }

  static bool of_scalar(const Rule& rule, const JsonValue& value) {
    const std::string& keyword = rule.keyword;
    if (keyword == "pattern") {
      return value.kind != Kind::String ||
             std::regex_search(value.text, std::regex(rule.rule.text));
    }
    const bool number = value.kind == Kind::Number;
    if (keyword == "minimum") return !number || value.number >= rule.rule.number;
    if (keyword == "maximum") return !number || value.number <= rule.rule.number;
    if (keyword == "exclusiveMinimum") return !number || value.number > rule.rule.number;
    if (keyword == "multipleOf") return !number || std::fmod(value.number, rule.rule.number) == 0;
    if (value.kind == Kind::Array || number || value.kind == Kind::String ||
        value.kind == Kind::Boolean || value.kind == Kind::Null) {
      static const std::set<std::string> others = {"items", "minItems", "maxItems", "uniqueItems"};
      if (others.count(keyword) != 0) return true;
    }
    throw std::logic_error("unknown keyword " + keyword);
  }

  const JsonValue& root_;
};

}  // namespace

std::string schema_problem(const JsonValue& schema, const JsonValue& document) {
  return Checker(schema).problem(schema, document, "");
}

}  // namespace interlock
