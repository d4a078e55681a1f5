// Machine names: the machines that have a device, for those who type "h100" or "8xh100".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace interlock {

/// Returns which machines of the catalogue have the device that `typed` names, as a hint for a
/// message: "h100" (the device's name), "a100" (its start), "8xh100" or "h100x8" (with as many of
/// them a node, if there are such). Empty: it names no device.
/// Throws: Error if a file of the catalogue cannot be read.
std::string machines_meant(std::string_view typed);

}  // namespace interlock
