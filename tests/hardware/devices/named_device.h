// Devices of the catalogue, by name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "hardware/devices/device_reader.h"

namespace interlock {

/// Reads a device of the catalogue, such as "b200"; a test fails where there is none.
inline Device device_named(const std::string& name) {
  Diagnostics diagnostics;
  JsonValue value;
  value.kind = JsonValue::Kind::String;
  value.text = name;
  const Device device = read_device({&value, ""}, diagnostics);
  REQUIRE(diagnostics.empty());
  return device;
}

}  // namespace interlock
