// The "run" of a result as JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scenarios/long_run/run_plan.h"

namespace interlock {

/// Returns {"mean", "deviation", "p5", "p50", "p95"}.
nlohmann::ordered_json spread_json(const Spread& spread);

/// Returns keys as docs/result.md has them.
nlohmann::ordered_json run_json(const RunResult& run);

}  // namespace interlock
