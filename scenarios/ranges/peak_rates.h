// Peak rates: whether kernels of a scenario are priced as if they reached their device's peak.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "scenarios/plan/plan.h"

namespace interlock {

/// Returns a sentence on the kernels that are priced at the peak rates because the device states no
/// efficiency for them; nothing if they take less than kWorthTelling of the kernels' time, or if
/// the device was calibrated. No measured run says how far off such a prediction is.
std::optional<std::string> peak_rates(const Plan& plan);

}  // namespace interlock
