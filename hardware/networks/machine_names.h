// Machine names: the machines that are meant by those who type "h100", "8xh100" or "p5".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/json/json.h"

namespace interlock {

/// Returns what is wrong with `machine`, with the names that may be meant, or else all names;
/// empty: it is a machine of the catalogue, a path, or no text. Throws: Error if a file of the
/// catalogue cannot be read.
std::string unknown_machine(const JsonValue& machine);

/// Returns which machines of the catalogue have the device that `typed` names, as a hint for a
/// message: "h100" (the device's name), "a100" (its start), "8xh100" or "h100x8" (with as many of
/// them a node, if there are such). Empty: it names no device.
/// Throws: Error if a file of the catalogue cannot be read.
std::string machines_meant(std::string_view typed);

/// Returns which machines have a name like `typed`, as a hint: its beginning ("p5"), a part with a
/// number ("4090"), or their device with more behind it ("H100-SXM"). Empty: none.
/// Throws: Error if a file of the catalogue cannot be read.
std::string machines_like(std::string_view typed);

}  // namespace interlock
