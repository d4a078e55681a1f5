// SchemaChecker: what a JSON Schema (draft 7) has against a document, by its text alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json/json.h"

namespace interlock {

/// The first thing that is wrong, as "/path: what"; empty if nothing. Knows the keywords that our
/// schema uses; throws std::logic_error for others, so that none is passed over.
std::string schema_problem(const JsonValue& schema, const JsonValue& document);

}  // namespace interlock
