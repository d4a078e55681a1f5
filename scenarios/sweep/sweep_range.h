// Ranges in place of lists: {"from": 1, "to": 64, "times": 2}, {"from": "25 GB/s", "to": ...}.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/json/json.h"

namespace interlock {

/// Returns the numbers, or quantities of one unit, of a range, both ends included. Nothing, with
/// diagnostics, if it is wrong or endless.
std::vector<JsonValue> read_range(const JsonNode& node, Diagnostics& diagnostics);

}  // namespace interlock
