// Writes JsonValues.
// SPDX-License-Identifier: Apache-2.0
#include "reports/value_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/encode.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;
using Kind = JsonValue::Kind;

Json json_of(const JsonValue& value) {
  switch (value.kind) {
    case Kind::Null:
      break;
    case Kind::Boolean:
      return value.boolean;
    case Kind::Number: {
      const bool whole =
          std::floor(value.number) == value.number && std::abs(value.number) < 0x1p53;
      return whole ? Json(static_cast<std::int64_t>(value.number)) : Json(value.number);
    }
    case Kind::String:
      return clean_utf8(value.text);
    case Kind::Array: {
      Json json = Json::array();
      for (const JsonValue& item : value.items) json.push_back(json_of(item));
      return json;
    }
    case Kind::Object: {
      Json json = Json::object();
      for (const auto& [key, member] : value.members) json[clean_utf8(key)] = json_of(member);
      return json;
    }
  }
  return nullptr;
}

}  // namespace

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

std::string json_file(const JsonValue& value) { return json_of(value).dump(2) + "\n"; }

}  // namespace interlock
