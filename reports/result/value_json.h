// ValueJson: what commands say as JSON, put together from small values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/json/json.h"

namespace interlock {

/// Says how keys and texts of a document are written.
struct JsonTexts {
  std::function<std::string(std::string_view)> key;
  std::function<std::string(const JsonValue&)> text;
};
nlohmann::ordered_json document_json(const JsonValue& value, const JsonTexts& texts);
/// Returns a number as JSON; whole ones without a point.
nlohmann::ordered_json number_json(double number);

/// Returns the document `value` as a file holds it, with a line end. Texts are made valid UTF-8.
std::string json_file(const JsonValue& value);
/// Returns `value` on one line without a line end. Texts keep their line ends, which JSON escapes.
std::string json_line(const JsonValue& value);

}  // namespace interlock
