// Documents written back as JSON.
// SPDX-License-Identifier: Apache-2.0
#include "reports/result/scenario_json.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "reports/result/value_json.h"
#include "reports/words/encode.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

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
  return document_json(value,
                       {clean_utf8, [&](const JsonValue& text) { return text_of(text, folder); }});
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
