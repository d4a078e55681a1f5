// --set of sweeps: what has commas or dots is swept.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"

namespace interlock {

/// Returns the axis that `text` stands for: a list of "V,W", or the range of "FROM..TO",
/// "FROM..TO..STEP" or "FROM..TOxTIMES"; nothing if it is a plain value. `origin`: its option.
std::optional<JsonValue> swept_axis(const std::string& text, const std::string& origin);

/// A scenario to sweep, and which overrides are the same for all of it. Example: the overrides
/// "training.schedule=gpipe,1f1b" and "training.steps=8" make a "sweep" of {"training.schedule":
/// ["gpipe", "1f1b"]}; the second is left in `overrides`.
struct SweptDocument {
  JsonValue document;
  std::vector<std::string> overrides;
};

/// Reads `file` and carries out `overrides`: "path=V,W", ranges, and "path,path=[[V,W],[X,Y]]"
/// become axes of its "sweep". Throws: Error as read_scenario_document does.
SweptDocument read_swept_document(const std::string& file,
                                  const std::vector<std::string>& overrides);

}  // namespace interlock
