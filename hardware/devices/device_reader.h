// Reads devices: names of the catalogue, files, or inline objects in the form of its files.
// SPDX-License-Identifier: Apache-2.0
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

/// Returns the rows of a device: its own, of one by its base, of its peaks, and of its
/// efficiencies.
const std::vector<ContractObject>& device_contract();
/// Returns the type of a device: a name, a path, or an object.
ContractType device_type();

/// Reads a device; adds a diagnostic for each mistake.
Device read_device(const JsonNode& node, Diagnostics& diagnostics);

/// Finds the device that a name, path or object stands for, with all members of its base. Adds a
/// diagnostic and returns nothing if there is none.
std::optional<CatalogueEntry> find_device(const JsonNode& node, Diagnostics& diagnostics);

/// Returns the devices of the catalogue that state efficiencies, by name; read once. Throws: Error.
const std::vector<Lender>& lenders();

/// Returns the names of the devices in the catalogue, sorted.
std::vector<std::string> device_names();
/// Returns the architectures of those devices, sorted, each once; read once. Throws: Error.
const std::vector<std::string>& device_architectures();

}  // namespace interlock
