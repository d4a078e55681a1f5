// Modules that cost the same, as the layers of a transformer do: they need be priced once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/layers/model_graph.h"

namespace interlock {

/// Whether two modules differ in their names at most.
bool equal_work(const Module& a, const Module& b);

}  // namespace interlock
