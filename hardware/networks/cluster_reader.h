// ClusterReader: clusters out of scenarios and of the catalogue.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/contract/section.h"
#include "hardware/networks/cluster.h"

namespace interlock {

/// Returns the rows of clusters, and of all that they are made of.
const std::vector<ContractObject>& cluster_contract();
/// Returns the type of a cluster: a name, a path, or an object.
ContractType cluster_type();

/// Reads a scenario's cluster: a bare name, or an object of cluster_contract().
/// A diagnostic is added for each mistake.
Cluster read_cluster(const JsonNode& node, Diagnostics& diagnostics);

/// Returns the names of the machines in the catalogue, sorted.
std::vector<std::string> catalogue_names();

}  // namespace interlock
