// Reads what joins nodes ("network") and what joins the devices of a node by PCIe ("pcie").
// SPDX-License-Identifier: Apache-2.0
//
//   {"kind": "switch"}
//   {"kind": "fat-tree", "nodes_per_leaf": 32, "leaves_per_pod": 16, "oversubscription": 2,
//    "pod_oversubscription": 4, "rail_optimised": true, "hop_latency": "0.3 us", "paths": "hash"}
//   {"kind": "dragonfly", "groups": 9, "routers_per_group": 4, "nodes_per_router": 2, "cables": 1,
//    "local": {...}, "global": {...}}
//   {"kind": "torus", "dimensions": [4, 4, 4], "of": "nodes", "link": {...}}
//   {"kind": "wan", "delay": [[null, "30 ms"], ["31 ms", null]], "bandwidth": [[...], [...]]}
//   "pcie": {"switches": 4, "sockets": 2, "uplink": {...}, "socket_link": {...}}
#pragma once

#include "base/json/json.h"
#include "hardware/networks/cluster.h"

namespace interlock {

/// Reads the network at `node`. `cluster` has its devices per node and its cards already.
/// A diagnostic is added for each mistake; the network is then an ideal switch.
void read_network(const JsonNode& node, Cluster& cluster, Diagnostics& diagnostics);

/// Reads the optional "pcie" of a machine whose devices per node are known.
void read_pcie(ObjectReader& reader, Cluster& cluster);

}  // namespace interlock
