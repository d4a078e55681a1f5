// resolve_auto: gives a scenario whose schedule is "auto" the order that a search finds for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scenarios/load/scenario.h"

namespace interlock {

/// `scenario` with a schedule that can be made: the hand-made one that nothing beats, or an order
/// of its own. Any other scenario is returned as it is.
/// Throws: Error if no order fits into the memory of a device, saying what would.
Scenario resolve_auto(const Scenario& scenario);

}  // namespace interlock
