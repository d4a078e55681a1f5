// ValueJson: what commands say as JSON, put together from small values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace interlock {

JsonValue json_text(const std::string& text);
JsonValue json_number(double number);
JsonValue json_boolean(bool boolean);
JsonValue json_list(std::vector<JsonValue> items);
JsonValue json_texts(const std::vector<std::string>& texts);
/// In this order.
JsonValue json_object(std::vector<JsonMember> members);

/// The document `value` as a file holds it, with a line end. Texts are made valid UTF-8.
std::string json_file(const JsonValue& value);

}  // namespace interlock
