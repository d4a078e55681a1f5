// ValueJson: what commands say as JSON, put together from small values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"

namespace interlock {

/// Returns the document `value` as a file holds it, with a line end. Texts are made valid UTF-8.
std::string json_file(const JsonValue& value);
/// Returns `value` on one line without a line end. Texts keep their line ends, which JSON escapes.
std::string json_line(const JsonValue& value);

}  // namespace interlock
