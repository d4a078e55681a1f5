// KnownMemory: whether a result knows what devices hold, or times alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reports/headlines/headlines.h"

namespace interlock {

/// Returns false for models and workloads of times alone: devices then hold messages at most, where
/// any training has weights or keeps activations.
bool knows_memory(const Metrics& metrics);

/// Returns the headline that stands in the place of a peak which is not known.
Headline unknown_memory(const ScenarioResult& result);

}  // namespace interlock
