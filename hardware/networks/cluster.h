// Cluster: devices, the links between them, and the route of every message.
// SPDX-License-Identifier: Apache-2.0
//
// Links are one-way and numbered; routes are computed when asked for, so that a mesh of thousands
// of devices costs nothing until its links are used. Two messages interfere only where their routes
// share a link.
//
// Example: two nodes of dgx-a100-80g, eight devices and eight cards each.
//   route 0 -> 1   "gpu0 up", "gpu1 down"                  231 GB/s, 3.4 us
//   route 0 -> 8   "node0 nic0 up", "node1 nic0 down"      25 GB/s, 9.6 us
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "hardware/devices/device.h"
#include "hardware/devices/real_devices.h"
#include "hardware/devices/running_costs.h"
#include "hardware/topologies/dragonfly.h"
#include "hardware/topologies/fat_tree.h"
#include "hardware/topologies/link.h"
#include "hardware/topologies/pcie_tree.h"
#include "hardware/topologies/torus.h"
#include "hardware/topologies/wan.h"

namespace interlock {

/// One ideal switch between all network cards.
struct IdealSwitch {};
/// The network that joins the nodes, or the devices themselves (a torus of devices).
using Network = std::variant<IdealSwitch, FatTree, Dragonfly, Torus, Wan>;

/// A machine as a scenario asks for it. `mesh`: a private full-duplex link for each pair.
/// Otherwise each device has an up and a down port into its node's switch or PCIe tree, and nodes
/// are joined by their network cards (each shared by devices_per_node / cards_per_node devices). On
/// a torus of devices messages use nothing but the torus.
struct Cluster {
  std::string name;
  Device device;
  int devices = 1;           // used by the scenario
  int devices_per_node = 1;  // of the machine
  bool mesh = false;
  Seconds port_latency;             // device to device inside a node (or the mesh's link)
  BytesPerSecond port_bandwidth;    // one direction, as messages and collectives reach it
  BytesPerSecond port_stated = {};  // by the data sheet
  int cards_per_node = 1;           // 0: none, and one node only; at most devices_per_node
  Seconds card_latency;             // device to device between nodes that share a switch
  BytesPerSecond card_bandwidth;    // one direction, as messages and collectives reach it
  BytesPerSecond card_stated = {};  // by the data sheet
  bool cards_behind_ports = false;  // what goes to another node crosses the device's port, too
  std::optional<PcieTree> pcie;     // none: the devices of a node share an ideal switch
  Network network;
  LinkSpeed host;     // of each device to its host's memory, each direction; bandwidth 0: unknown
  Bytes host_memory;  // of each node's host; 0: unknown
  /// Time that a host takes to issue a kernel, over the time that frameworks state.
  double host_pace = 1;
  /// Links that have a part of their bandwidth only: (link, how many times less).
  std::vector<std::pair<LinkId, double>> slow_links = {};
  MachinePower power = {};                // besides that of the devices
  std::optional<HourlyPrice> price = {};  // of a device; none: unknown
  RealDevices executor = {};              // what runs a scenario for real
};

/// Nodes that hold devices of the scenario. A mesh is one node.
int nodes(const Cluster& cluster);
/// The node that holds `device`.
int node_of(const Cluster& cluster, int device);
/// The card of its node that `device` uses: neighbours share one. REQUIRES: cards_per_node > 0.
int card_of(const Cluster& cluster, int device);

/// As the end of a route: the memory of the host of the device at the other end.
inline constexpr int kHost = -1;
/// The route from one device to another, or between a device and its host.
/// REQUIRES: devices in [0, cluster.devices); of a host, has_host(cluster).
Route route(const Cluster& cluster, int from, int to);
/// REQUIRES: `id` came from a route of this cluster.
Link link(const Cluster& cluster, LinkId id);

/// The route between a device and the memory of its host, for what is kept there.
enum class HostDirection { ToHost, FromHost };
/// REQUIRES: has_host(cluster); `device` in [0, cluster.devices).
Route host_route(const Cluster& cluster, int device, HostDirection direction);
bool has_host(const Cluster& cluster);

/// Divides the bandwidth of the narrowest links on the way from a device to another.
void slow_link(Cluster& cluster, int from, int to, double slowdown);

}  // namespace interlock
