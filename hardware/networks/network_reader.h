// Reads what joins nodes and devices ("network", "node_topology", "pcie"), and "collectives".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/contract/section.h"
#include "hardware/networks/cluster.h"

namespace interlock {

/// Returns the rows of networks: an object for each kind.
const std::vector<ContractObject>& network_contract();
/// Returns the row of a network, which is `otherwise` if it is left out.
ContractKey network_key(const std::string& otherwise);
/// Returns the rows of a PCIe tree.
const ContractObject& pcie_object();

/// Reads the network at `node`. `cluster` has the devices per node and the cards of its machines
/// already.
/// A diagnostic is added for each mistake; the network is then an ideal switch.
void read_network(const JsonNode& node, Cluster& cluster, Diagnostics& diagnostics);

/// Returns the key that says what joins the devices of a node.
ContractKey node_topology_key();
/// Reads the optional "pcie" and "node_topology" of a machine whose devices per node are known.
void read_node_links(Section& reader, const Network& network, Machine& machine);

/// Returns the key that says what collectives take their times from.
ContractKey collectives_key();
/// Reads it; device and executor of the cluster are known.
void read_collectives_key(Section& reader, Cluster& cluster);

}  // namespace interlock
