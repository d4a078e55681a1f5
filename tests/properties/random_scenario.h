// Random scenarios: every strategy, schedule, layout, ZeRO stage, recomputation and variation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

namespace interlock {

/// Draws a scenario on at most 16 devices; equal seeds draw equal ones. The loader refuses some of
/// them: not every schedule takes every number of micro-batches, for example.
nlohmann::ordered_json random_scenario(std::uint64_t seed);

/// Returns `scenario`, one of random_scenario, with every duration `factor` times as long: those of
/// modules and links, and the inverse of every rate.
nlohmann::ordered_json slowed(nlohmann::ordered_json scenario, double factor);

/// Returns `scenario`, one of random_scenario, with `factor` times the bandwidth on every link.
nlohmann::ordered_json widened(nlohmann::ordered_json scenario, double factor);

}  // namespace interlock
