// What a machine draws and what it costs: power of devices, links and nodes, price of an hour.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/units.h"

namespace interlock {

/// Of one device while it executes anything, and while it waits.
struct DevicePower {
  Watts busy, idle;
};

/// Of what is around the devices. Unknown is left out of every sum, and said.
struct MachinePower {
  std::optional<Watts> node;  // all of a node but its devices; they share it evenly
  std::optional<Watts> link;  // of a one-way link while it carries bytes at its full speed
  double pue = 1;             // all that the building draws, over what the machine draws
};

/// What an hour of one device costs, with all around it.
struct HourlyPrice {
  double amount = 0;
  std::string currency;  // three capital letters (ISO 4217)
};

}  // namespace interlock
