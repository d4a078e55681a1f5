// Modules that cost the same, as the layers of a transformer do: they need be priced once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/layers/model_graph.h"

namespace interlock {

/// Returns true if two modules differ in nothing but their names.
bool equal_work(const Module& a, const Module& b);

}  // namespace interlock
