// Checks that what a framework says of an architecture can be said of a device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/framework.h"
#include "base/json/json.h"
#include "hardware/networks/cluster.h"

namespace interlock {

/// Reports each architecture of `framework` that no device of the catalogue or of `cluster` has: it
/// would do nothing. The place is the key, where `document` writes it, or else the framework.
void check_architectures(const Framework& framework, const std::optional<Cluster>& cluster,
                         const JsonNode& document, Diagnostics& diagnostics);

}  // namespace interlock
