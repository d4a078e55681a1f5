// BuildModel: a model as documents describe it becomes a ModelGraph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/layers/model_graph.h"

namespace interlock {

/// Reads a model (zoo name, path of a model file, or inline object) and builds its graph.
/// A diagnostic is added for each mistake; the graph is then empty.
ModelGraph build_model(const JsonNode& model, const BuildOptions& options,
                       Diagnostics& diagnostics);

}  // namespace interlock
