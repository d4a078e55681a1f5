// Sets a key of a scenario, inside a name too.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/contract/set_key.h"

#include "base/text.h"
#include "scenarios/contract/open_names.h"

namespace interlock {

void set_key(JsonValue& document, std::string_view dotted_path, const JsonValue& value,
             const std::string& origin) {
  open_names(document, dotted_path, origin);
  set_json(document, dotted_path, value, origin);
}

void apply_overrides(JsonValue& document, const std::vector<std::string>& overrides) {
  for (const std::string& override : overrides) {
    const std::size_t equals = override.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error("--set " + in_quotes(override) + ": expected path=VALUE, e.g. training.steps=16");
    }
    const std::string dotted = override.substr(0, equals), origin = "--set " + dotted;
    set_key(document, dotted, parse_override(override.substr(equals + 1), origin), origin);
  }
}

}  // namespace interlock
