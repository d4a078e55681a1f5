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

/// Devices of nodes that are alike: all of each node, or those of one kind. Each device has an up
/// and a down port into its node's switch or PCIe tree, and nodes are joined by their network cards
/// (each shared by devices_per_node / cards_per_node devices). Where devices are joined by pairs a
/// port is the sum of a device's links to the others, and each pair has its part of that alone.
struct Machine {
  std::string name;
  Device device;
  int first_device = 0;  // its number in the cluster; the machine has all up to the next one's
  bool joins = false;    // its devices stand in the nodes of the machine before, see Cluster
  int devices_per_node = 1;
  Seconds port_latency;             // device to device inside a node (or the mesh's link)
  BytesPerSecond port_bandwidth;    // one direction, as messages and collectives reach it
  BytesPerSecond port_stated = {};  // by the data sheet
  int cards_per_node = 1;           // 0: none, and one node only; at most devices_per_node
  Seconds card_latency;  // device to device between nodes that share a switch; half at each end
  BytesPerSecond card_bandwidth;       // one direction, as messages and collectives reach it
  BytesPerSecond card_stated = {};     // by the data sheet
  BytesPerSecond pair_bandwidth = {};  // of each pair's own link, one direction; 0: there is none
  bool cards_behind_ports = false;     // what goes to another node crosses the device's port, too
  std::optional<PcieTree> pcie = {};   // none: an ideal switch, or pairs
  LinkSpeed host = {};     // of each device to its host's memory, each direction; 0: unknown
  Bytes host_memory = {};  // of each node's host; 0: unknown
  /// Time that a host takes to issue a kernel, over the time that frameworks state.
  double host_pace = 1;
  MachinePower power = {};                // besides that of the devices
  std::optional<HourlyPrice> price = {};  // of a device; none: unknown

  /// Returns true if each pair of a node's devices has a link of its own.
  bool has_pair_links() const { return pair_bandwidth > BytesPerSecond(); }
};

/// A cluster as a scenario asks for it: nodes of one machine after those of another, in the order
/// of `machines`. `mesh`: a private full-duplex link for each pair of devices, of one machine. On a
/// torus of devices messages use nothing but the torus.
///
/// Devices of several kinds in one node are machines of their own that join the one before: of them
/// all devices_per_node is that of the node, and links are the same.
///
/// Example: two nodes of eight A100 and one of four H100. machines[0] has the devices 0 to 15 in
/// nodes 0 and 1, machines[1] has first_device 16 and node 2; devices = 20. Two nodes of three P100
/// and one V100 are four machines with the first devices 0, 3, 4 and 7, all but the first of which
/// join; devices_per_node = 4.
struct Cluster {
  std::string name;
  std::vector<Machine> machines = std::vector<Machine>(1);
  int devices = 1;  // used by the scenario, of all machines
  bool mesh = false;
  Network network = {};
  /// Links that have a part of their bandwidth only: (link, how many times less).
  std::vector<std::pair<LinkId, double>> slow_links = {};
  RealDevices executor = {};  // what runs a scenario for real
  /// Collectives inside a node take the times that the device's calibration has of them.
  bool calibrated_collectives = false;
};

/// Returns the place of the machine of `device` in cluster.machines: the one way to ask what it is.
/// REQUIRES: device >= 0.
std::size_t machine_number(const Cluster& cluster, int device);
inline const Machine& machine_of(const Cluster& cluster, int device) {
  return cluster.machines[machine_number(cluster, device)];
}
/// Returns true if devices or nodes are of several machines.
inline bool is_mixed(const Cluster& cluster) { return cluster.machines.size() > 1; }
/// Returns the device of a cluster of one machine; of a mixed one, that of its first.
inline const Device& front_device(const Cluster& cluster) {
  return cluster.machines.front().device;
}
/// Returns true if all devices can price work whose duration was not measured.
bool have_rates(const Cluster& cluster);
/// Returns true if the devices are all of one kind, which was calibrated.
inline bool is_calibrated(const Cluster& cluster) {
  return !is_mixed(cluster) && front_device(cluster).calibrated != nullptr;
}
/// Returns the devices of a machine that the scenario uses.
int devices_of(const Cluster& cluster, std::size_t machine);

/// Returns the number of nodes that hold devices of the scenario. A mesh is one node.
int nodes(const Cluster& cluster);
/// Returns the number of nodes of one machine, and of those that join it; 0 for one that joins.
int nodes_of(const Cluster& cluster, std::size_t machine);
/// Returns the node that holds `device`.
int node_of(const Cluster& cluster, int device);
/// Returns the card of its node that `device` uses: neighbours share one. REQUIRES: cards_per_node
/// > 0.
int card_of(const Cluster& cluster, int device);

/// As the end of a route: the memory of the host of the device at the other end.
inline constexpr int kHost = -1;
/// Returns the route from one device to another, or between a device and its host.
/// REQUIRES: devices in [0, cluster.devices); of a host, has_host(cluster).
Route route(const Cluster& cluster, int from, int to);
/// Writes it into `found`, whose memory is used again.
void route(const Cluster& cluster, int from, int to, Route& found);
/// REQUIRES: `id` came from a route of this cluster.
Link link(const Cluster& cluster, LinkId id);
/// Returns that of link(), sooner.
BytesPerSecond bandwidth_of(const Cluster& cluster, LinkId id);

/// The route between a device and the memory of its host, for what is kept there.
enum class HostDirection { ToHost, FromHost };
/// REQUIRES: has_host(cluster); `device` in [0, cluster.devices).
Route host_route(const Cluster& cluster, int device, HostDirection direction);
/// Returns true if every device has a way to its host.
bool has_host(const Cluster& cluster);

/// Divides the bandwidth of the narrowest links on the way from a device to another.
void slow_link(Cluster& cluster, int from, int to, double slowdown);

}  // namespace interlock
