// Checks that what a framework says of an architecture can be said of a device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/framework.h"
#include "base/json/json.h"
#include "hardware/networks/cluster.h"

namespace interlock {

/// Reports each architecture of `framework` whose name is almost one of the catalogue or of
/// `cluster`: it would do nothing. Others may be of a cluster that a variant has. The place is the
/// key, where `document` writes it, or else the framework.
void check_architectures(const Framework& framework, const std::optional<Cluster>& cluster,
                         const JsonNode& document, Diagnostics& diagnostics);

}  // namespace interlock
