// ChakraTrace: a run as execution traces for other simulators.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "scenarios/simulate/run_scenario.h"

namespace interlock {

/// Returns the bytes of a file for each device, by its number. REQUIRES: the log was kept.
/// Throws: Error if devices are left out of the simulation, or for what such traces cannot say.
std::vector<std::string> chakra_files(const ScenarioResult& result);

}  // namespace interlock
