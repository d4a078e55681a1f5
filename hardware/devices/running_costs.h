// Power and prices of a machine: power of devices, links and nodes, price of an hour.
// SPDX-License-Identifier: Apache-2.0
//
// Example: eight devices of {busy 400 W, idle 60 W}, a node of 1,000 W beside them, a PUE of 1.2. A
// node whose devices all work draws 1.2 x (8 x 400 + 1,000) = 5,040 W.
#pragma once

#include <optional>
#include <string>

#include "base/units.h"

namespace interlock {

/// Power of one device while it executes anything, and while it waits.
struct DevicePower {
  Watts busy, idle;
  bool operator==(const DevicePower&) const = default;
};

/// Power of everything around the devices. Sums leave out what is unknown, and say so.
struct MachinePower {
  std::optional<Watts> node;  // all of a node but its devices; they share it evenly
  std::optional<Watts> link;  // of a one-way link while it carries bytes at its full speed
  double pue = 1;             // all that the building draws, over what the machine draws
};

/// The price of an hour of one device, with everything around it.
struct HourlyPrice {
  double amount = 0;
  std::string currency;  // three capital letters (ISO 4217)
};

}  // namespace interlock
