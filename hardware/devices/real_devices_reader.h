// RealDevicesReader: on what a harness is to run, as scenarios say it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/contract/section.h"
#include "hardware/devices/real_devices.h"

namespace interlock {

/// Returns the rows of executors: an object for each kind.
const std::vector<ContractObject>& executor_contract();
/// Returns the row of a cluster's executor: "cpu", "cuda" or "virtual", or an object.
ContractKey executor_key();

/// Reads an executor, a name or an object. A diagnostic is added for each mistake.
RealDevices read_real_devices(const JsonNode& node, Diagnostics& diagnostics);

}  // namespace interlock
