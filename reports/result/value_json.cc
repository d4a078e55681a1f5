// Writes JsonValues.
// SPDX-License-Identifier: Apache-2.0
#include "reports/result/value_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/words/encode.h"

namespace interlock {
using Json = nlohmann::ordered_json;

Json number_json(double number) {
  const bool whole = std::floor(number) == number && std::abs(number) < 0x1p53;
  return whole ? Json(static_cast<std::int64_t>(number)) : Json(number);
}

Json document_json(const JsonValue& value, const JsonTexts& texts) {
  switch (value.kind) {
    case JsonValue::Kind::Null:
      break;
    case JsonValue::Kind::Boolean:
      return value.boolean;
    case JsonValue::Kind::Number:
      return number_json(value.number);
    case JsonValue::Kind::String:
      return texts.text(value);
    case JsonValue::Kind::Array: {
      Json json = Json::array();
      for (const JsonValue& item : value.items) json.push_back(document_json(item, texts));
      return json;
    }
    case JsonValue::Kind::Object: {
      Json json = Json::object();
      for (const auto& [key, member] : value.members) {
        json[texts.key(key)] = document_json(member, texts);
      }
      return json;
    }
  }
  return nullptr;
}

std::string json_file(const JsonValue& value) {
  const auto cleaned = [](const JsonValue& text) { return clean_utf8(text.text); };
  return document_json(value, {clean_utf8, cleaned}).dump(2) + "\n";
}

std::string json_line(const JsonValue& value) {
  const JsonTexts as_they_are = {[](std::string_view key) { return std::string(key); },
                                 [](const JsonValue& text) { return text.text; }};
  return document_json(value, as_they_are).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace interlock
