// Reads devices: names of the catalogue, files, or inline objects in the form of its files.
// SPDX-License-Identifier: Apache-2.0
//
//   {"memory": "80 GiB", "memory_bandwidth": "2 TB/s", "launch_overhead": "3 us",
//    "peak": {"fp32": "19.5 TFLOP/s", "bf16": "312 TFLOP/s"},
//    "efficiency": {"gemm": {"compute": 0.8, "memory": 0.85}, ...}, "origin": {...}}
//
// {"base": DEVICE, "memory": "96 GiB", ...} is another device with some members of its own.
// A class of kernels that "efficiency" leaves out reaches the peak rates; "efficiency": "peak" says
// that of all. A device without "efficiency" borrows those of the nearest one of the catalogue. One
// that was measured also has a "calibration", as `interlock calibrate` wrote it; "calibrated/NAME"
// names one of hardware/calibrated/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hardware/devices/borrowed_efficiency.h"
#include "hardware/devices/catalogue_file.h"
#include "hardware/devices/device.h"

namespace interlock {

/// A diagnostic is added for each mistake.
Device read_device(const JsonNode& node, Diagnostics& diagnostics);

/// Finds the device that a name, path or object stands for, with all members of its base. Adds a
/// diagnostic and returns nothing if there is none.
std::optional<CatalogueEntry> find_device(const JsonNode& node, Diagnostics& diagnostics);

/// Returns the devices of the catalogue that state efficiencies, by name; read once. Throws: Error.
const std::vector<Lender>& lenders();

/// Names of the devices in the catalogue, sorted.
std::vector<std::string> device_names();

}  // namespace interlock
