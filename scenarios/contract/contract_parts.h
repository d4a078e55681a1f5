// Rows of the scenario contract: the objects that each file of this room holds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/contract/contract_types.h"

namespace interlock::contract {

// Types that several sections have.
ContractType strategy_type();
ContractType schedule_type();
ContractType recompute_type();
ContractType partition_type();
std::vector<ContractKey> length_keys();

std::vector<ContractObject> document_objects();
std::vector<ContractObject> parallel_objects();
ContractObject strategy_object();
std::vector<ContractObject> training_objects();
std::vector<ContractObject> run_objects();
std::vector<ContractObject> swarm_objects();
std::vector<ContractObject> variation_objects();
std::vector<ContractObject> sweep_objects();

}  // namespace interlock::contract
