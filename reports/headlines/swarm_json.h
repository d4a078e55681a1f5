// The "swarm" of a result as JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scenarios/long_run/swarm_plan.h"

namespace interlock {

/// Returns keys as docs/result.md has them. Rates in samples are null where their number is not
/// known.
nlohmann::ordered_json swarm_json(const SwarmResult& swarm, bool samples_known);

}  // namespace interlock
