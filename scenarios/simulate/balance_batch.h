// Sizes of micro-batches where a document leaves them open: one for the whole step, or a mix.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "scenarios/load/scenario.h"

namespace interlock {

/// Loads one document, whose sizes are written.
using LoadScenario = std::function<Scenario(const JsonValue& document, Diagnostics& diagnostics)>;

/// Where `document` leaves the size of a micro-batch open, `scenario` has samples one by one: keeps
/// the scenario of least span among those of every size that divides the batch, and of steps that
/// mix sizes if these are faster still.
void balance_batch(const JsonValue& document, const LoadScenario& load, Scenario& scenario);

}  // namespace interlock
