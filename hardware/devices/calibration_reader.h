// Reads what `interlock calibrate` wrote: the "calibration" of a device file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/json/json.h"
#include "hardware/devices/calibrated_model.h"

namespace interlock {

/// Returns "plain", "relu", ..., by OpVariant.
const std::vector<std::string>& op_variant_names();
/// Returns "other", "forward", "input-gradient" and "weight-gradient", by OpRole.
const std::vector<std::string>& op_role_names();
/// Returns "all-reduce", "all-gather", ..., by CollectiveKind.
const std::vector<std::string>& collective_kind_names();

/// Reads the model; adds a diagnostic for each mistake, and the model is then empty.
std::shared_ptr<const CalibratedModel> read_calibration(const JsonNode& node,
                                                        Diagnostics& diagnostics);

}  // namespace interlock
