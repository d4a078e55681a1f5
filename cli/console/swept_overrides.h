// --set of sweeps: what has commas or dots is swept.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"

namespace interlock {

/// A scenario to sweep, and which overrides are the same for all of it.
struct SweptDocument {
  JsonValue document;
  std::vector<std::string> overrides;
};

/// Reads `file` and carries out `overrides`: "path=V,W" and "path=FROM..TO" or
/// "path=FROM..TO..STEP" become axes of its "sweep". Throws: Error as read_scenario_document does.
SweptDocument read_swept_document(const std::string& file,
                                  const std::vector<std::string>& overrides);

}  // namespace interlock
