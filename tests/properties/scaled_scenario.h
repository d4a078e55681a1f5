// Scenarios whose durations or bandwidths are multiplied.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace interlock {

/// Returns "12.5 GB/s" and the like, to the last bit of `value`.
std::string with_unit(double value, const char* unit);
/// Returns `text`, a number and a unit, with the number multiplied by `factor`.
std::string times(const std::string& text, double factor);

/// Returns `scenario`, one of random_scenario, with every duration `factor` times as long: those of
/// modules and links, and the inverse of every rate.
nlohmann::ordered_json slowed(nlohmann::ordered_json scenario, double factor);

/// Returns `scenario`, one of random_scenario, with `factor` times the bandwidth on every link.
nlohmann::ordered_json widened(nlohmann::ordered_json scenario, double factor);

}  // namespace interlock
