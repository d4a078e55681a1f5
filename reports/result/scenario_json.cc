// Documents written back as JSON.
// SPDX-License-Identifier: Apache-2.0
#include "reports/result/scenario_json.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "reports/words/encode.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

Json number_json(double number) {
  const bool whole = std::floor(number) == number && std::abs(number) < 0x1p53;
  return whole ? Json(static_cast<std::int64_t>(number)) : Json(number);
}

/// Returns a path as seen from `folder`, given one from the folder of its own file; a name is left
/// as it is.
std::string text_of(const JsonValue& value, const std::string& folder) {
  namespace fs = std::filesystem;
  if (!value.file || value.text.empty()) return clean_utf8(value.text);
  const fs::path path = fs::path(*value.file).parent_path() / value.text;
  std::error_code failed;
  const bool names_file = value.text.find_first_of("/.") != std::string::npos;
  const bool file = names_file && fs::is_regular_file(path, failed);
  if (!file) return clean_utf8(value.text);
  const fs::path seen = folder.empty() ? path.lexically_normal() : fs::proximate(path, folder);
  return clean_utf8(seen.string());
}

Json json_of(const JsonValue& value, const std::string& folder = "") {
  switch (value.kind) {
    case JsonValue::Kind::Null:
      break;
    case JsonValue::Kind::Boolean:
      return value.boolean;
    case JsonValue::Kind::Number:
      return number_json(value.number);
    case JsonValue::Kind::String:
      return text_of(value, folder);
    case JsonValue::Kind::Array: {
      Json json = Json::array();
      for (const JsonValue& item : value.items) json.push_back(json_of(item, folder));
      return json;
    }
    case JsonValue::Kind::Object: {
      Json json = Json::object();
      for (const auto& [key, member] : value.members)
        json[clean_utf8(key)] = json_of(member, folder);
      return json;
    }
  }
  return nullptr;
}

}  // namespace

Json value_json(const JsonValue& value) { return json_of(value); }

Json scenario_json(const Question& scenario) {
  if (!scenario.document) return nullptr;
  Json json{{"name", clean_utf8(scenario.name)}};
  for (const auto& [key, member] : scenario.document->members) {
    if (key != "$schema" && key != "sweep" && key != "name") json[key] = json_of(member);
  }
  return json;
}

std::string scenario_file(const JsonValue& document, const std::string& folder) {
  return json_of(document, folder).dump(2) + "\n";
}

Json sweep_json(const Question& scenario) {
  Json json = Json::object();
  for (const SweptValue& value : scenario.swept) {
    json[clean_utf8(value.path)] =
        value.number ? number_json(*value.number) : Json(clean_utf8(value.label));
  }
  return json;
}

}  // namespace interlock
