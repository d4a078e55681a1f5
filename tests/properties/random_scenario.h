// Random scenarios: every strategy, schedule, layout, ZeRO stage, recomputation and variation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

namespace interlock {

/// Draws a scenario on at most 16 devices; equal seeds draw equal ones. The loader refuses some of
/// them: not every schedule takes every number of micro-batches, for example.
nlohmann::ordered_json random_scenario(std::uint64_t seed);

}  // namespace interlock
