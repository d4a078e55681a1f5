// OpenNames: a name in a scenario, opened into the object that says the same.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/json/json.h"

namespace interlock {

/// Makes room in `document` for the key at `dotted_path`: every name on the way to it becomes an
/// object. A strategy, schedule or model is named by that object; a machine, device or framework
/// gives way to what its file holds, where the key is one of the file's.
/// `origin`: what a message blames for a name that there is not.
void open_names(JsonValue& document, std::string_view dotted_path, const std::string& origin);

/// Returns `document` with machine, device and framework open, as if all of their keys were set.
/// Throws: Error if there is no such name.
JsonValue with_files_open(JsonValue document);

}  // namespace interlock
