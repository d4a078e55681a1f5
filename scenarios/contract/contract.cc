// Puts the table of the scenario contract together.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/contract/contract.h"

#include "hardware/networks/cluster_reader.h"
#include "models/build_model.h"
#include "scenarios/contract/contract_parts.h"

namespace interlock {

const std::vector<ContractObject>& scenario_contract() {
  using namespace contract;
  static const std::vector<ContractObject> all = joined(
      {document_objects(), parallel_objects(), training_objects(), run_objects(), swarm_objects(),
       variation_objects(), sweep_objects(), model_contract(), cluster_contract()});
  return all;
}

const ContractObject& contract_object(std::string_view name) {
  return contract_object(scenario_contract(), name);
}

const std::vector<std::string>& contract_names(std::string_view object, std::string_view key) {
  return contract_names(contract_object(object), key);
}

}  // namespace interlock
