// Cluster: devices, the links between them, and the route of every message.
// SPDX-License-Identifier: Apache-2.0
//
// Links are one-way and numbered; routes are computed when asked for, so that a mesh of thousands
// of devices costs nothing until its links are used. Two messages interfere only where their routes
// share a link.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "hardware/device.h"

namespace interlock {

using LinkId = std::int64_t;

/// A one-way link.
struct Link {
  std::string name;  // "0->1" in a mesh; "gpu3 up", "node1 nic0 down" elsewhere
  BytesPerSecond bandwidth;
};

/// The way of a message between two devices. Empty `links`: the devices are the same.
struct Route {
  std::vector<LinkId> links;
  Seconds latency;           // of the whole way
  BytesPerSecond bandwidth;  // of the narrowest link
};

/// A machine as a scenario asks for it. `mesh`: a private full-duplex link for each pair.
/// Otherwise each device has an up and a down port into its node's switch, and nodes are joined by
/// their network cards (each shared by devices_per_node / cards_per_node devices).
struct Cluster {
  std::string name;
  Device device;
  int devices = 1;           // used by the scenario
  int devices_per_node = 1;  // of the machine
  bool mesh = false;
  Seconds port_latency;           // device to device inside a node (or the mesh's link)
  BytesPerSecond port_bandwidth;  // one direction
  int cards_per_node = 1;         // 0: none, and one node only
  Seconds card_latency;           // device to device between nodes
  BytesPerSecond card_bandwidth;  // one direction
};

/// The route from one device to another. REQUIRES: both in [0, cluster.devices).
Route route(const Cluster& cluster, int from, int to);
/// REQUIRES: `id` came from a route of this cluster.
Link link(const Cluster& cluster, LinkId id);

/// Reads a scenario's cluster: {"machine": name or path, "nodes", "devices"}, a bare name, or an
/// inline object (kind "uniform", or the form of the catalogue's files).
/// A diagnostic is added for each mistake.
Cluster read_cluster(const JsonNode& node, Diagnostics& diagnostics);

/// Names of the machines in the catalogue, sorted.
std::vector<std::string> catalogue_names();

}  // namespace interlock
