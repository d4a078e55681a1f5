// How many nodes a network joins, and whether those of a scenario fit it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json/json.h"
#include "hardware/networks/cluster.h"

namespace interlock {

/// Most devices of a machine: above any that is planned.
inline constexpr int kMostDevices = 1'000'000;

/// Returns true if messages can pass between nodes.
bool joins_nodes(const Cluster& cluster);
/// Returns the nodes of a cluster of one machine that names no number: as many as its network is
/// made for, else 1.
int nodes_joined(const Cluster& cluster);
/// Lays `nodes` on the network; a diagnostic at `where` if they do not fit.
void fit_network(Cluster& cluster, int nodes, const JsonNode& where, Diagnostics& diagnostics);

}  // namespace interlock
