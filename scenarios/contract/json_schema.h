// JsonSchema: the scenario contract for editors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/contract/contract_types.h"
#include "base/json/json.h"

namespace interlock {

/// Returns the contract as a JSON Schema (draft 07), a definition for each object. Names of the
/// zoo and the catalogue are examples, which editors offer.
JsonValue json_schema();

/// Returns what `key` means, and the kinds of its object that use it; with names in backticks.
std::string meaning_of(const ContractKey& key);

}  // namespace interlock
