// The scenario contract: the table of all keys of a scenario.
// SPDX-License-Identifier: Apache-2.0
//
// Rows of models and clusters stand beside their readers, those of all other sections in this room;
// scenario_contract() puts them together. Readers read by them (base/contract/section.h), and from
// them come the JSON Schema (json_schema.h) and docs/reference.md (reference_page.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/contract/section.h"

namespace interlock {

/// Returns every object of a scenario, the document first.
const std::vector<ContractObject>& scenario_contract();
/// Returns the object of that name. REQUIRES: it is in the contract.
const ContractObject& contract_object(std::string_view name);
/// Returns the names that `key` of the object accepts. REQUIRES: it is in the contract and has
/// names.
const std::vector<std::string>& contract_names(std::string_view object, std::string_view key);

}  // namespace interlock
