// Routes: which links a message takes between two devices, and what they are called.
// SPDX-License-Identifier: Apache-2.0
//
// Numbering of links. First what belongs to the kind: a mesh has from * devices + to; machines have
// the ports, two a place for a device (up, down), then the network cards, two a card (up, down),
// cards in order of their nodes, then the links inside one node after the other: of a PCIe tree, or
// of pairs, from * devices + to. Next the links to host memory, two a place (to, from), and last
// the network's, which have no upper bound. Places are those of the nodes in use, whether the
// scenario uses them or not.
#include "hardware/networks/cluster.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace interlock {
namespace {

/// The numbers at which the nodes, places, cards and links inside nodes of a machine begin.
struct Begin {
  LinkId node = 0, place = 0, card = 0, inside = 0;
};

/// Returns the numbers that the links inside a node take.
LinkId links_inside(const Machine& machine) {
  if (machine.pcie) return links_of(*machine.pcie);
  const bool pairs = machine.has_pair_links();
  return pairs ? LinkId{machine.devices_per_node} * machine.devices_per_node : 0;
}

/// Returns the devices of a machine, and of those that join it.
int devices_together(const Cluster& cluster, std::size_t machine) {
  std::size_t next = machine + 1;
  while (next < cluster.machines.size() && cluster.machines[next].joins) ++next;
  const bool last = next == cluster.machines.size();
  return (last ? cluster.devices : cluster.machines[next].first_device) -
         cluster.machines[machine].first_device;
}

/// Returns the machine that begins the nodes of machine `machine`: itself, if it joins none.
std::size_t joined_by(const Cluster& cluster, std::size_t machine) {
  while (cluster.machines[machine].joins) --machine;
  return machine;
}

/// Returns the beginnings of machine `machine`, which joins none; of all machines together behind
/// the last.
Begin begin_of(const Cluster& cluster, std::size_t machine) {
  Begin begin;
  for (std::size_t i = 0; i < machine; ++i) {
    const Machine& before = cluster.machines[i];
    if (before.joins) continue;
    const LinkId nodes = nodes_of(cluster, i);
    begin.node += nodes;
    begin.place += nodes * before.devices_per_node;
    begin.card += nodes * before.cards_per_node;
    begin.inside += nodes * links_inside(before);
  }
  return begin;
}

Begin end_of(const Cluster& cluster) { return begin_of(cluster, cluster.machines.size()); }

LinkId places(const Cluster& cluster) {
  return cluster.mesh ? cluster.devices : end_of(cluster).place;
}

LinkId first_card_link(const Cluster& cluster) { return 2 * places(cluster); }

LinkId first_inside_link(const Cluster& cluster) {
  return first_card_link(cluster) + 2 * end_of(cluster).card;
}

LinkId first_host_link(const Cluster& cluster) {
  if (cluster.mesh) return LinkId{cluster.devices} * cluster.devices;
  return first_inside_link(cluster) + end_of(cluster).inside;
}

LinkId first_network_link(const Cluster& cluster) {
  return first_host_link(cluster) + 2 * places(cluster);
}

/// A place for a device in a node of a machine.
struct Place {
  const Machine& machine;
  Begin begin;    // of the machine, or of the one that it joins
  int local = 0;  // its number among their devices

  LinkId number() const { return begin.place + local; }
  int node() const { return local / machine.devices_per_node; }  // of the machine
  LinkId node_of_cluster() const { return begin.node + node(); }
  int in_node() const { return local % machine.devices_per_node; }
  int card() const {  // of its node
    return static_cast<int>(LinkId{in_node()} * machine.cards_per_node / machine.devices_per_node);
  }
  int pcie_switch() const {
    return in_node() / (machine.devices_per_node / machine.pcie->switches);
  }
};

Place place_of(const Cluster& cluster, int device) {
  const std::size_t number = machine_number(cluster, device);
  const std::size_t first = joined_by(cluster, number);
  return {cluster.machines[number], begin_of(cluster, first),
          device - cluster.machines[first].first_device};
}

LinkId port(const Place& place, LinkDirection direction) { return 2 * place.number() + direction; }

/// Returns the link of the card of `place`. `first`: that of the first card of the cluster.
LinkId card(LinkId first, const Place& place, LinkDirection direction) {
  const LinkId number =
      place.begin.card + LinkId{place.node()} * place.machine.cards_per_node + place.card();
  return first + 2 * number + direction;
}

LinkId links_inside_node(const Cluster& cluster, const Place& place) {
  return first_inside_link(cluster) + place.begin.inside +
         place.node() * links_inside(place.machine);
}

/// Returns the PCIe switch that holds the card of `place`: that of the first device that uses the
/// card.
int switch_of_card(const Place& place) {
  const int all = place.machine.devices_per_node, cards = place.machine.cards_per_node;
  const Place first = {place.machine, place.begin, (place.card() * all + cards - 1) / cards};
  return first.pcie_switch();
}

void cross_node(const Cluster& cluster, const Place& from, const Place& to, Route& route) {
  if (from.local == to.local) return;
  const Machine& machine = from.machine;
  if (machine.has_pair_links()) {
    const LinkId pair = LinkId{from.in_node()} * machine.devices_per_node + to.in_node();
    cross(route, links_inside_node(cluster, from) + pair, machine.pair_bandwidth);
    route.latency += machine.port_latency;
    return;
  }
  cross(route, port(from, Up), machine.port_bandwidth);
  if (machine.pcie) {
    cross(*machine.pcie, from.pcie_switch(), to.pcie_switch(), links_inside_node(cluster, from),
          route);
  }
  cross(route, port(to, Down), machine.port_bandwidth);
  route.latency += machine.port_latency;
}

/// From a device up to the wire of its card. A card beside a switch of its own (NVSwitch) reaches
/// its device by PCIe that nothing else uses; on a PCIe tree, or where cards stand behind the same
/// switch as the devices, the way is shared. `first`: as card() has it.
void leave_node(const Cluster& cluster, LinkId first, const Place& place, Route& route) {
  const Machine& machine = place.machine;
  if (machine.pcie || machine.cards_behind_ports) {
    cross(route, port(place, Up), machine.port_bandwidth);
  }
  if (machine.pcie) {
    cross(*machine.pcie, place.pcie_switch(), switch_of_card(place),
          links_inside_node(cluster, place), route);
  }
  cross(route, card(first, place, Up), machine.card_bandwidth);
}

void enter_node(const Cluster& cluster, LinkId first, const Place& place, Route& route) {
  const Machine& machine = place.machine;
  cross(route, card(first, place, Down), machine.card_bandwidth);
  if (machine.pcie) {
    cross(*machine.pcie, switch_of_card(place), place.pcie_switch(),
          links_inside_node(cluster, place), route);
  }
  if (machine.pcie || machine.cards_behind_ports) {
    cross(route, port(place, Down), machine.port_bandwidth);
  }
}

/// Two devices of different nodes.
struct Ends {
  int from_device, to_device;
  Place from, to;
};

/// REQUIRES: the cards of all machines are alike.
Passage passage(const FatTree& tree, const Ends& ends) {
  const LinkId node = ends.to.node_of_cluster();
  const int used = ends.to.card();
  return {.from_node = static_cast<int>(ends.from.node_of_cluster()),
          .to_node = static_cast<int>(node),
          .card = used,
          .target = tree.rails > 0 ? node : node * ends.to.machine.cards_per_node + used,
          .from = ends.from_device,
          .to = ends.to_device};
}

void cross_network(const Cluster& cluster, const Ends& ends, Route& route) {
  if (std::holds_alternative<IdealSwitch>(cluster.network)) return;
  const LinkId first = first_network_link(cluster);
  const int from_node = static_cast<int>(ends.from.node_of_cluster());
  const int to_node = static_cast<int>(ends.to.node_of_cluster());
  if (const auto* tree = std::get_if<FatTree>(&cluster.network)) {
    cross(*tree, passage(*tree, ends), first, route);
  } else if (const auto* dragonfly = std::get_if<Dragonfly>(&cluster.network)) {
    cross(*dragonfly, from_node, to_node, first, route);
  } else if (const auto* torus = std::get_if<Torus>(&cluster.network)) {
    cross(*torus, from_node, to_node, first, route);
  } else if (const auto* wan = std::get_if<Wan>(&cluster.network)) {
    cross(*wan, from_node, to_node, first, route);
  }
}

/// Returns the place at which a message leaves its node: the one beside the card that has the
/// number of the destination's card, if cards of different numbers are not joined.
Place place_of_exit(const Cluster& cluster, const Place& from, const Place& to) {
  const auto* tree = std::get_if<FatTree>(&cluster.network);
  if (tree == nullptr || tree->rails == 0) return from;
  if (from.card() == to.card()) return from;
  return {from.machine, from.begin, from.local - from.in_node() + to.in_node()};
}

void cross_nodes(const Cluster& cluster, const Ends& ends, Route& route) {
  const LinkId first_card = first_card_link(cluster);
  const Place exit = place_of_exit(cluster, ends.from, ends.to);
  cross_node(cluster, ends.from, exit, route);
  leave_node(cluster, first_card, exit, route);
  cross_network(cluster, ends, route);
  enter_node(cluster, first_card, ends.to, route);
  const Machine &from = ends.from.machine, &to = ends.to.machine;
  route.latency += (from.card_latency + to.card_latency) * 0.5;
}

const Torus* torus_of_devices(const Cluster& cluster) {
  const auto* torus = std::get_if<Torus>(&cluster.network);
  return torus != nullptr && torus->of_devices ? torus : nullptr;
}

std::string of_node(LinkId node) { return "node" + std::to_string(node) + " "; }

/// Returns the machine that has the part of number `id`, counted by `part` in Begin.
std::size_t machine_with(const Cluster& cluster, LinkId Begin::*part, LinkId id) {
  std::size_t machine = 0;
  while (id >= begin_of(cluster, machine + 1).*part) ++machine;
  return machine;
}

/// Returns what the device at a place is called: "gpu9" by its number in the cluster, or by its
/// place in the node if the scenario does not use it.
std::string name_of_place(const Cluster& cluster, LinkId place) {
  if (cluster.mesh) return "gpu" + std::to_string(place);
  const std::size_t number = machine_with(cluster, &Begin::place, place);
  const Machine& machine = cluster.machines[number];
  const Begin begin = begin_of(cluster, number);
  const LinkId local = place - begin.place;
  const int used = devices_together(cluster, number);
  if (machine.first_device + used == cluster.devices || local < used) {
    return "gpu" + std::to_string(machine.first_device + local);
  }
  return of_node(begin.node + local / machine.devices_per_node) + "unused gpu" +
         std::to_string(local % machine.devices_per_node);
}

/// Says whether a link is to have its name, which takes longer than its bandwidth.
enum class Naming { Unnamed, Named };

Link card_link(const Cluster& cluster, LinkId id, Naming naming) {
  const std::size_t number = machine_with(cluster, &Begin::card, id / 2);
  const Machine& machine = cluster.machines[number];
  if (naming == Naming::Unnamed) return {"", machine.card_bandwidth};
  const Begin begin = begin_of(cluster, number);
  const LinkId card = id / 2 - begin.card;
  return {of_node(begin.node + card / machine.cards_per_node) + "nic" +
              std::to_string(card % machine.cards_per_node) + direction_name(id),
          machine.card_bandwidth};
}

Link link_inside(const Cluster& cluster, LinkId id, Naming naming) {
  const std::size_t number = machine_with(cluster, &Begin::inside, id);
  const Machine& machine = cluster.machines[number];
  const bool pairs = machine.has_pair_links();
  if (naming == Naming::Unnamed && pairs) return {"", machine.pair_bandwidth};
  const Begin begin = begin_of(cluster, number);
  const LinkId node = (id - begin.inside) / links_inside(machine);
  const LinkId local = (id - begin.inside) % links_inside(machine);
  if (pairs) {
    const int all = machine.devices_per_node;
    const LinkId first = begin.place + node * all;
    return {name_of_place(cluster, first + local / all) + "->" +
                name_of_place(cluster, first + local % all),
            machine.pair_bandwidth};
  }
  Link found = link(*machine.pcie, local);
  found.name = of_node(begin.node + node) + found.name;
  return found;
}

Link machine_link(const Cluster& cluster, LinkId id, Naming naming) {
  const LinkId first_card = first_card_link(cluster);
  if (id < first_card) {
    const Machine& machine = cluster.machines[machine_with(cluster, &Begin::place, id / 2)];
    if (naming == Naming::Unnamed) return {"", machine.port_bandwidth};
    return {name_of_place(cluster, id / 2) + direction_name(id), machine.port_bandwidth};
  }
  const LinkId first_inside = first_inside_link(cluster);
  if (id < first_inside) return card_link(cluster, id - first_card, naming);
  return link_inside(cluster, id - first_inside, naming);
}

Link network_link(const Network& network, LinkId id) {
  if (const auto* tree = std::get_if<FatTree>(&network)) return link(*tree, id);
  if (const auto* dragonfly = std::get_if<Dragonfly>(&network)) return link(*dragonfly, id);
  if (const auto* torus = std::get_if<Torus>(&network)) return link(*torus, id);
  const auto* wan = std::get_if<Wan>(&network);
  CHECK(wan != nullptr, "an ideal switch has no links of its own");
  return link(*wan, id);
}

/// Crosses the links of the route as if none were slow.
void cross_devices(const Cluster& cluster, int from, int to, Route& route) {
  if (from == to) return;
  if (cluster.mesh) {
    const Machine& machine = cluster.machines.front();
    cross(route, LinkId{from} * cluster.devices + to, machine.port_bandwidth);
    route.latency = machine.port_latency;
    return;
  }
  if (const Torus* torus = torus_of_devices(cluster)) {
    cross(*torus, from, to, first_network_link(cluster), route);
    return;
  }
  const Ends ends = {from, to, place_of(cluster, from), place_of(cluster, to)};
  if (ends.from.node_of_cluster() != ends.to.node_of_cluster()) {
    cross_nodes(cluster, ends, route);
  } else {
    cross_node(cluster, ends.from, ends.to, route);
  }
}

Link whole_link(const Cluster& cluster, LinkId id, Naming naming) {
  const LinkId host = first_host_link(cluster);
  if (id >= first_network_link(cluster)) {
    return network_link(cluster.network, id - first_network_link(cluster));
  }
  if (id >= host) {
    const LinkId number = id - host;
    const std::size_t machine = cluster.mesh ? 0 : machine_with(cluster, &Begin::place, number / 2);
    return {name_of_place(cluster, number / 2) + (number % 2 == Up ? " to host" : " from host"),
            cluster.machines[machine].host.bandwidth};
  }
  if (!cluster.mesh) return machine_link(cluster, id, naming);
  return {std::to_string(id / cluster.devices) + "->" + std::to_string(id % cluster.devices),
          cluster.machines.front().port_bandwidth};
}

/// Narrows `route` where its links are slow.
void narrow(const Cluster& cluster, Route& route) {
  if (cluster.slow_links.empty()) return;
  for (const LinkId id : route.links) {
    route.bandwidth = std::min(route.bandwidth, bandwidth_of(cluster, id));
  }
}

}  // namespace

std::size_t machine_number(const Cluster& cluster, int device) {
  std::size_t machine = cluster.machines.size() - 1;
  while (cluster.machines[machine].first_device > device) --machine;
  return machine;
}

bool have_rates(const Cluster& cluster) {
  return std::all_of(cluster.machines.begin(), cluster.machines.end(),
                     [](const Machine& machine) { return has_rates(machine.device); });
}

int devices_of(const Cluster& cluster, std::size_t machine) {
  const bool last = machine + 1 == cluster.machines.size();
  const int end = last ? cluster.devices : cluster.machines[machine + 1].first_device;
  return end - cluster.machines[machine].first_device;
}

int nodes(const Cluster& cluster) {
  return cluster.mesh ? 1 : static_cast<int>(end_of(cluster).node);
}

int nodes_of(const Cluster& cluster, std::size_t machine) {
  if (cluster.mesh) return 1;
  if (cluster.machines[machine].joins) return 0;
  const int each = cluster.machines[machine].devices_per_node;
  return (devices_together(cluster, machine) + each - 1) / each;
}

int node_of(const Cluster& cluster, int device) {
  return cluster.mesh ? 0 : static_cast<int>(place_of(cluster, device).node_of_cluster());
}

int card_of(const Cluster& cluster, int device) { return place_of(cluster, device).card(); }

bool has_host(const Cluster& cluster) {
  return std::all_of(cluster.machines.begin(), cluster.machines.end(), [](const Machine& machine) {
    return machine.host.bandwidth > BytesPerSecond();
  });
}

Route route(const Cluster& cluster, int from, int to) {
  Route found;
  route(cluster, from, to, found);
  return found;
}

void route(const Cluster& cluster, int from, int to, Route& found) {
  if (to == kHost || from == kHost) {
    found = to == kHost ? host_route(cluster, from, HostDirection::ToHost)
                        : host_route(cluster, to, HostDirection::FromHost);
    return;
  }
  CHECK(from >= 0 && from < cluster.devices && to >= 0 && to < cluster.devices,
        "devices " + std::to_string(from) + " and " + std::to_string(to) + " of a cluster of " +
            std::to_string(cluster.devices));
  found.links.clear();
  found.latency = Seconds(0);
  found.bandwidth = {};
  cross_devices(cluster, from, to, found);
  narrow(cluster, found);
}

Route host_route(const Cluster& cluster, int device, HostDirection direction) {
  CHECK(has_host(cluster), "a cluster that knows the way to its hosts");
  CHECK(device >= 0 && device < cluster.devices, "a device of the cluster");
  const bool down = direction == HostDirection::FromHost;
  const Place place = place_of(cluster, device);
  const Machine& machine = place.machine;
  const LinkId own = first_host_link(cluster) + port(place, down ? Down : Up);
  Route found{.latency = machine.host.latency};
  if (!machine.pcie) {
    cross(found, own, machine.host.bandwidth);
    narrow(cluster, found);
    return found;
  }
  const LinkId first = links_inside_node(cluster, place);
  const int at = place.pcie_switch();
  if (down) {
    cross(found, own, machine.host.bandwidth);
    descend(*machine.pcie, at, first, found);
    cross(found, port(place, Down), machine.port_bandwidth);
  } else {
    cross(found, port(place, Up), machine.port_bandwidth);
    climb(*machine.pcie, at, first, found);
    cross(found, own, machine.host.bandwidth);
  }
  narrow(cluster, found);
  return found;
}

BytesPerSecond bandwidth_of(const Cluster& cluster, LinkId id) {
  BytesPerSecond bandwidth = whole_link(cluster, id, Naming::Unnamed).bandwidth;
  for (const auto& [slow, slowdown] : cluster.slow_links) {
    if (slow == id) bandwidth = bandwidth / slowdown;
  }
  return bandwidth;
}

Link link(const Cluster& cluster, LinkId id) {
  return {whole_link(cluster, id, Naming::Named).name, bandwidth_of(cluster, id)};
}

void slow_link(Cluster& cluster, int from, int to, double slowdown) {
  const Route way = route(cluster, from, to);
  for (const LinkId id : way.links) {
    if (bandwidth_of(cluster, id) > way.bandwidth) continue;
    cluster.slow_links.emplace_back(id, slowdown);
  }
}

}  // namespace interlock
