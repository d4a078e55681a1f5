// Sets a key of a scenario, inside a name too.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"

namespace interlock {

/// Sets a key as `set_json` does; but a name on the way to the key (of a strategy, a schedule, a
/// model, a machine, a device or a framework) becomes the object that says the same, see
/// open_names. Throws: Error as `set_json` does, and for a name that stands for nothing.
void set_key(JsonValue& document, std::string_view dotted_path, const JsonValue& value,
             const std::string& origin);

/// Sets "path=VALUE", each as --set does. Throws: Error likewise.
void apply_overrides(JsonValue& document, const std::vector<std::string>& overrides);

}  // namespace interlock
