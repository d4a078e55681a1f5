// RunningCostsReader: what machines draw and cost, as files say it.
// SPDX-License-Identifier: Apache-2.0
//
//   in a device:    "power": {"busy": "400 W", "idle": "60 W"}
//   in a machine:   "power": {"node": "3.3 kW", "link": "5 W", "pue": 1.2}, "price": "4.10 USD/h"
//   in a scenario:  "cluster": {"machine": ..., "power": {...}, "price": ...}, each key in
//   the place of the machine's; "busy" and "idle" there too, in the place of the device's
#pragma once

#include <optional>

#include "base/contract/section.h"
#include "hardware/devices/running_costs.h"

namespace interlock {

/// Returns the rows of the power of a machine, and of a device.
const std::vector<ContractObject>& power_contract();
/// Returns the rows of "power" and "price" of a cluster, which are `otherwise` if left out.
std::vector<ContractKey> running_cost_keys(const std::string& otherwise);

/// Reads a price such as "2.50 USD/h" from the text at `node`; a diagnostic and nothing if it is
/// not of that form.
std::optional<HourlyPrice> read_hourly_price(const JsonNode& node, Diagnostics& diagnostics);

/// Reads a device's "power", if it has one.
std::optional<DevicePower> read_device_power(Section& device);
/// Reads "power" and "price" of a machine, or of a scenario's cluster, over what is there.
void read_running_costs(Section& machine, std::optional<DevicePower>& device, MachinePower& power,
                        std::optional<HourlyPrice>& price);

}  // namespace interlock
