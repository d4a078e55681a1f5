// ClusterReader: clusters out of scenarios and of the catalogue.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"
#include "hardware/networks/cluster.h"

namespace interlock {

/// Reads a scenario's cluster: {"machine": name or path, "nodes", "devices", "network"}, a bare
/// name, or an inline object (kind "uniform", or the form of the catalogue's files).
/// A diagnostic is added for each mistake.
Cluster read_cluster(const JsonNode& node, Diagnostics& diagnostics);

/// Names of the machines in the catalogue, sorted.
std::vector<std::string> catalogue_names();

}  // namespace interlock
