// RealDevicesReader: on what a harness is to run, as scenarios say it.
// SPDX-License-Identifier: Apache-2.0
//
// "cpu", "cuda" or "virtual", or {"kind": "cuda", "devices": "gpus" | "partitions",
// "multiprocessors": 16, "links": "copy-engine" | "paced" | "zero", "transport": "peer" | "nccl"},
// {"kind": "cpu", "links": "immediate" | "emulated"}.
#pragma once

#include "base/json/json.h"
#include "hardware/devices/real_devices.h"

namespace interlock {

/// Reads any of these. A diagnostic is added for each mistake.
RealDevices read_real_devices(const JsonNode& node, Diagnostics& diagnostics);

}  // namespace interlock
