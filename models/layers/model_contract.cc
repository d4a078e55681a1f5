// Rows that models of every kind have in common.
// SPDX-License-Identifier: Apache-2.0
#include "models/layers/model_contract.h"

namespace interlock {

ContractObject model_object(const std::string& kind, const std::string& meaning,
                            const std::vector<ContractKey>& keys) {
  using namespace contract;
  ContractObject model = {
      .name = "model." + kind,
      .meaning = meaning,
      .keys = {{"kind", one_of({kind}), "required", "The kind of this model."},
               {"name", text(), "the kind", "Name in results."},
               {"source", text(), "", "Where the sizes come from; not used."},
               {"notes", list(text()), "", "Sentences about the model, told when it is loaded."}}};
  model.keys.insert(model.keys.end(), keys.begin(), keys.end());
  return model;
}

}  // namespace interlock
