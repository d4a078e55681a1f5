// Writes JsonValues.
// SPDX-License-Identifier: Apache-2.0
#include "reports/result/value_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/words/encode.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;
using Kind = JsonValue::Kind;

using Cleaner = std::string (*)(std::string_view);

Json plain_json(const JsonValue& value, Cleaner clean) {
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
      return clean(value.text);
    case Kind::Array: {
      Json json = Json::array();
      for (const JsonValue& item : value.items) json.push_back(plain_json(item, clean));
      return json;
    }
    case Kind::Object: {
      Json json = Json::object();
      for (const auto& [key, member] : value.members) json[clean(key)] = plain_json(member, clean);
      return json;
    }
  }
  return nullptr;
}

}  // namespace

std::string json_file(const JsonValue& value) {
  return plain_json(value, clean_utf8).dump(2) + "\n";
}

std::string json_line(const JsonValue& value) {
  const Cleaner as_it_is = [](std::string_view text) { return std::string(text); };
  return plain_json(value, as_it_is).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace interlock
