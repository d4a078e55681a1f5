// Routes: which links a message takes between two devices, and what they are called.
// SPDX-License-Identifier: Apache-2.0
//
// Numbering of links. First what belongs to the kind: a mesh has from * devices + to; machines have
// the ports, two a device (up, down), then the network cards, two a card (up, down), cards in order
// of their nodes, then the PCIe links of one node after the other. Next the links to host memory,
// two a device (to, from), and last the network's, which have no upper bound.
#include "hardware/networks/cluster.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace interlock {
namespace {

/// Places for devices: those of the nodes in use, whether the scenario uses them or not.
LinkId places(const Cluster& cluster) {
  return cluster.mesh ? cluster.devices : LinkId{nodes(cluster)} * cluster.devices_per_node;
}

LinkId first_pcie_link(const Cluster& cluster) {
  return 2 * places(cluster) + 2 * LinkId{nodes(cluster)} * cluster.cards_per_node;
}

LinkId first_host_link(const Cluster& cluster) {
  if (cluster.mesh) return LinkId{cluster.devices} * cluster.devices;
  const LinkId pcie = cluster.pcie ? links_of(*cluster.pcie) : 0;
  return first_pcie_link(cluster) + nodes(cluster) * pcie;
}

LinkId first_network_link(const Cluster& cluster) {
  return first_host_link(cluster) + 2 * places(cluster);
}

LinkId port(int device, LinkDirection direction) { return 2 * LinkId{device} + direction; }

LinkId card(const Cluster& cluster, int device, LinkDirection direction) {
  const LinkId number =
      LinkId{node_of(cluster, device)} * cluster.cards_per_node + card_of(cluster, device);
  return 2 * places(cluster) + 2 * number + direction;
}

LinkId pcie_links_of_node(const Cluster& cluster, int device) {
  return first_pcie_link(cluster) + node_of(cluster, device) * links_of(*cluster.pcie);
}

int switch_of(const Cluster& cluster, int device) {
  return device % cluster.devices_per_node / (cluster.devices_per_node / cluster.pcie->switches);
}

/// The PCIe switch that holds the card of `device`: that of the first device that uses the card.
int switch_of_card(const Cluster& cluster, int device) {
  const int all = cluster.devices_per_node;
  const int first =
      (card_of(cluster, device) * all + cluster.cards_per_node - 1) / cluster.cards_per_node;
  return switch_of(cluster, first);
}

void cross_node(const Cluster& cluster, int from, int to, Route& route) {
  if (from == to) return;
  cross(route, port(from, Up), cluster.port_bandwidth);
  if (cluster.pcie) {
    cross(*cluster.pcie, switch_of(cluster, from), switch_of(cluster, to),
          pcie_links_of_node(cluster, from), route);
  }
  cross(route, port(to, Down), cluster.port_bandwidth);
  route.latency += cluster.port_latency;
}

/// From a device up to the wire of its card. A card beside a switch of its own (NVSwitch) reaches
/// its device by PCIe that nothing else uses; on a PCIe tree, or where cards stand behind the same
/// switch as the devices, the way is shared.
void leave_node(const Cluster& cluster, int device, Route& route) {
  if (cluster.pcie || cluster.cards_behind_ports) {
    cross(route, port(device, Up), cluster.port_bandwidth);
  }
  if (cluster.pcie) {
    cross(*cluster.pcie, switch_of(cluster, device), switch_of_card(cluster, device),
          pcie_links_of_node(cluster, device), route);
  }
  cross(route, card(cluster, device, Up), cluster.card_bandwidth);
}

void enter_node(const Cluster& cluster, int device, Route& route) {
  cross(route, card(cluster, device, Down), cluster.card_bandwidth);
  if (cluster.pcie) {
    cross(*cluster.pcie, switch_of_card(cluster, device), switch_of(cluster, device),
          pcie_links_of_node(cluster, device), route);
  }
  if (cluster.pcie || cluster.cards_behind_ports) {
    cross(route, port(device, Down), cluster.port_bandwidth);
  }
}

Passage passage(const Cluster& cluster, const FatTree& tree, int from, int to) {
  const LinkId node = node_of(cluster, to);
  const int used = card_of(cluster, to);
  return {.from_node = node_of(cluster, from),
          .to_node = node_of(cluster, to),
          .card = used,
          .target = tree.rails > 0 ? node : node * cluster.cards_per_node + used,
          .from = from,
          .to = to};
}

void cross_network(const Cluster& cluster, int from, int to, Route& route) {
  const LinkId first = first_network_link(cluster);
  const int from_node = node_of(cluster, from);
  const int to_node = node_of(cluster, to);
  if (const auto* tree = std::get_if<FatTree>(&cluster.network)) {
    cross(*tree, passage(cluster, *tree, from, to), first, route);
  } else if (const auto* dragonfly = std::get_if<Dragonfly>(&cluster.network)) {
    cross(*dragonfly, from_node, to_node, first, route);
  } else if (const auto* torus = std::get_if<Torus>(&cluster.network)) {
    cross(*torus, from_node, to_node, first, route);
  } else if (const auto* wan = std::get_if<Wan>(&cluster.network)) {
    cross(*wan, from_node, to_node, first, route);
  }
}

/// Returns the device at which a message leaves its node: the one beside the card that has the
/// number of the destination's card, if cards of different numbers are not joined.
int device_of_exit(const Cluster& cluster, int from, int to) {
  const auto* tree = std::get_if<FatTree>(&cluster.network);
  if (tree == nullptr || tree->rails == 0) return from;
  if (card_of(cluster, from) == card_of(cluster, to)) return from;
  return from - from % cluster.devices_per_node + to % cluster.devices_per_node;
}

Route route_between_nodes(const Cluster& cluster, int from, int to) {
  Route route;
  route.links.reserve(8);
  const int exit = device_of_exit(cluster, from, to);
  cross_node(cluster, from, exit, route);
  leave_node(cluster, exit, route);
  cross_network(cluster, from, to, route);
  enter_node(cluster, to, route);
  route.latency += cluster.card_latency;
  return route;
}

const Torus* torus_of_devices(const Cluster& cluster) {
  const auto* torus = std::get_if<Torus>(&cluster.network);
  return torus != nullptr && torus->of_devices ? torus : nullptr;
}

std::string of_node(LinkId node) { return "node" + std::to_string(node) + " "; }

Link machine_link(const Cluster& cluster, LinkId id) {
  if (id < 2 * places(cluster)) {
    return {"gpu" + std::to_string(id / 2) + direction_name(id), cluster.port_bandwidth};
  }
  if (id < first_pcie_link(cluster)) {
    const LinkId number = (id - 2 * places(cluster)) / 2;
    return {of_node(number / cluster.cards_per_node) + "nic" +
                std::to_string(number % cluster.cards_per_node) + direction_name(id),
            cluster.card_bandwidth};
  }
  const LinkId number = id - first_pcie_link(cluster);
  Link found = link(*cluster.pcie, number % links_of(*cluster.pcie));
  found.name = of_node(number / links_of(*cluster.pcie)) + found.name;
  return found;
}

Link network_link(const Network& network, LinkId id) {
  if (const auto* tree = std::get_if<FatTree>(&network)) return link(*tree, id);
  if (const auto* dragonfly = std::get_if<Dragonfly>(&network)) return link(*dragonfly, id);
  if (const auto* torus = std::get_if<Torus>(&network)) return link(*torus, id);
  const auto* wan = std::get_if<Wan>(&network);
  CHECK(wan != nullptr, "an ideal switch has no links of its own");
  return link(*wan, id);
}

/// The route where no link is slow.
Route whole_route(const Cluster& cluster, int from, int to) {
  if (from == to) return {};
  if (cluster.mesh) {
    const LinkId id = LinkId{from} * cluster.devices + to;
    return {{id}, cluster.port_latency, cluster.port_bandwidth};
  }
  Route found;
  if (const Torus* torus = torus_of_devices(cluster)) {
    cross(*torus, from, to, first_network_link(cluster), found);
    return found;
  }
  if (node_of(cluster, from) != node_of(cluster, to)) {
    return route_between_nodes(cluster, from, to);
  }
  cross_node(cluster, from, to, found);
  return found;
}

Link whole_link(const Cluster& cluster, LinkId id) {
  const LinkId host = first_host_link(cluster);
  if (id >= first_network_link(cluster)) {
    return network_link(cluster.network, id - first_network_link(cluster));
  }
  if (id >= host) {
    const LinkId number = id - host;
    return {"gpu" + std::to_string(number / 2) + (number % 2 == Up ? " to host" : " from host"),
            cluster.host.bandwidth};
  }
  if (!cluster.mesh) return machine_link(cluster, id);
  return {std::to_string(id / cluster.devices) + "->" + std::to_string(id % cluster.devices),
          cluster.port_bandwidth};
}

/// The bandwidth of `found` where links are slow.
Route narrowed(const Cluster& cluster, Route found) {
  if (cluster.slow_links.empty()) return found;
  for (const LinkId id : found.links) {
    found.bandwidth = std::min(found.bandwidth, link(cluster, id).bandwidth);
  }
  return found;
}

}  // namespace

int nodes(const Cluster& cluster) {
  if (cluster.mesh) return 1;
  return (cluster.devices + cluster.devices_per_node - 1) / cluster.devices_per_node;
}

int node_of(const Cluster& cluster, int device) {
  return cluster.mesh ? 0 : device / cluster.devices_per_node;
}

int card_of(const Cluster& cluster, int device) {
  const int local = device % cluster.devices_per_node;
  return static_cast<int>(LinkId{local} * cluster.cards_per_node / cluster.devices_per_node);
}

bool has_host(const Cluster& cluster) { return cluster.host.bandwidth > BytesPerSecond(); }

Route route(const Cluster& cluster, int from, int to) {
  if (to == kHost) return host_route(cluster, from, HostDirection::ToHost);
  if (from == kHost) return host_route(cluster, to, HostDirection::FromHost);
  CHECK(from >= 0 && from < cluster.devices && to >= 0 && to < cluster.devices,
        "devices " + std::to_string(from) + " and " + std::to_string(to) + " of a cluster of " +
            std::to_string(cluster.devices));
  return narrowed(cluster, whole_route(cluster, from, to));
}

Route host_route(const Cluster& cluster, int device, HostDirection direction) {
  CHECK(has_host(cluster), "a cluster that knows the way to its hosts");
  CHECK(device >= 0 && device < cluster.devices, "a device of the cluster");
  const bool down = direction == HostDirection::FromHost;
  const LinkId own = first_host_link(cluster) + port(device, down ? Down : Up);
  Route found{.latency = cluster.host.latency};
  if (!cluster.pcie) {
    cross(found, own, cluster.host.bandwidth);
    return narrowed(cluster, std::move(found));
  }
  const LinkId first = pcie_links_of_node(cluster, device);
  const int at = switch_of(cluster, device);
  if (down) {
    cross(found, own, cluster.host.bandwidth);
    descend(*cluster.pcie, at, first, found);
    cross(found, port(device, Down), cluster.port_bandwidth);
  } else {
    cross(found, port(device, Up), cluster.port_bandwidth);
    climb(*cluster.pcie, at, first, found);
    cross(found, own, cluster.host.bandwidth);
  }
  return narrowed(cluster, std::move(found));
}

Link link(const Cluster& cluster, LinkId id) {
  Link found = whole_link(cluster, id);
  for (const auto& [slow, slowdown] : cluster.slow_links) {
    if (slow == id) found.bandwidth = found.bandwidth / slowdown;
  }
  return found;
}

void slow_link(Cluster& cluster, int from, int to, double slowdown) {
  const Route way = route(cluster, from, to);
  for (const LinkId id : way.links) {
    if (link(cluster, id).bandwidth > way.bandwidth) continue;
    cluster.slow_links.emplace_back(id, slowdown);
  }
}

}  // namespace interlock
