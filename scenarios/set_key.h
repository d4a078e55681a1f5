// Sets a key of a scenario, inside a name too.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/json.h"

namespace interlock {

/// As `set_json`; but a strategy, schedule, cluster or model that is a name on the way to the key
/// becomes the object that says the same. Throws: Error as `set_json` does.
void set_key(JsonValue& document, std::string_view dotted_path, const JsonValue& value,
             const std::string& origin);

}  // namespace interlock
