// Puts the table of the scenario contract together.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/contract/contract.h"

#include <utility>

#include "models/build_model.h"
#include "scenarios/contract/contract_parts.h"

namespace interlock {
namespace {

std::vector<ContractObject> make_contract() {
  std::vector<ContractObject> all = contract::document_objects();
  const auto add = [&](const std::vector<ContractObject>& objects) {
    all.insert(all.end(), objects.begin(), objects.end());
  };
  for (auto* part :
       {contract::parallel_objects, contract::training_objects, contract::run_objects,
        contract::swarm_objects, contract::variation_objects, contract::sweep_objects}) {
    add(part());
  }
  add(model_contract());
  for (auto* part :
       {contract::cluster_objects, contract::network_objects, contract::device_objects}) {
    add(part());
  }
  return all;
}

}  // namespace

const std::vector<ContractObject>& scenario_contract() {
  static const std::vector<ContractObject> contract = make_contract();
  return contract;
}

const ContractObject& contract_object(std::string_view name) {
  return contract_object(scenario_contract(), name);
}

const std::vector<std::string>& contract_names(std::string_view object, std::string_view key) {
  return contract_names(contract_object(object), key);
}

}  // namespace interlock
