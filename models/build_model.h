// BuildModel: a model as documents describe it becomes a ModelGraph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/contract/contract_types.h"
#include "models/layers/model_graph.h"
#include "models/model_file.h"

namespace interlock {

/// Returns the rows of all kinds of models, then of their heads and of other descriptions.
const std::vector<ContractObject>& model_contract();
/// Returns the type of a model: a name, a path, or an object of any kind.
ContractType model_type();

/// Reads a model (zoo name, path of a model file, or inline object) and builds its graph.
/// A diagnostic is added for each mistake; the graph is then empty.
ModelGraph build_model(const JsonNode& model, const BuildOptions& options,
                       Diagnostics& diagnostics);
/// Builds the graph of a model that was found, see find_model().
ModelGraph build_described(const ModelObject& model, const BuildOptions& options,
                           Diagnostics& diagnostics);

}  // namespace interlock
