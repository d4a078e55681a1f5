// StoredResults: the results in the file of a sweep, as the files of simulate --json have them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"

namespace interlock {

/// Returns whether the file at `path` is a database.
bool is_database(const std::string& path);

/// Returns an object "interlock-result/1" for each row that has a result, in the order of the
/// sweep, without its scenario. Throws: Error if the file holds no sweep, or none of its rows a
/// result.
std::vector<JsonValue> stored_results(const std::string& path);

}  // namespace interlock
