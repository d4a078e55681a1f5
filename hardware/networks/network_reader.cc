// Reads networks and PCIe trees; what they must hold whatever the number of nodes.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/networks/network_reader.h"

#include "hardware/devices/catalogue_file.h"

namespace interlock {
namespace {

constexpr int kMostNodes = 1'000'000;
constexpr int kMostPerSwitch = 100'000;

ContractKey network_kind(const std::string& kind) {
  return {"kind", contract::one_of({kind}), "required", "The kind of this network."};
}

ContractObject fat_tree_object() {
  using namespace contract;
  return {
      .name = "cluster.network.fat-tree",
      .meaning =
          "Leaf switches joined by spines, or in pods that core switches join. Messages go up "
          "to the lowest switch above both nodes.",
      .keys = {
          network_kind("fat-tree"),
          {"nodes_per_leaf", whole(1, kMostPerSwitch), "required",
           "Nodes with cards on one leaf switch."},
          {"leaves_per_pod", whole(1, kMostPerSwitch), "two levels",
           "Leaves (of one rail) in a pod, which makes three levels."},
          {"oversubscription", number(0.1, 1000), "1",
           "Bandwidth of the cards of a leaf over that of its uplinks, which are rounded to a "
           "whole "
           "number."},
          {"pod_oversubscription", number(0.1, 1000), "1",
           "Bandwidth into a pod's aggregation switches over that to the core."},
          {"rail_optimised", boolean(), "false",
           "Card i of every node is on rail i, a tree of its own; a message to another rail "
           "crosses "
           "its own node first, as NCCL's PXN does."},
          {"hop_latency", time(), "0 s", "Of each link between switches."},
          {"paths", one_of({"destination", "hash"}), "destination",
           "Which of several equal paths a message takes: by the number of the card that it goes "
           "to, so that shifts and rings over all nodes never collide; or by a hash of both "
           "devices, as Ethernet switches do."}}};
}

ContractObject dragonfly_object() {
  using namespace contract;
  return {
      .name = "cluster.network.dragonfly",
      .meaning =
          "Groups of routers, all joined in a group, and each pair of groups by cables. "
          "Messages take at most one local link, one cable and one local link. The nodes are "
          "groups x routers x nodes of a router.",
      .keys = {network_kind("dragonfly"),
               {"groups", whole(1, kMostNodes), "required", "Groups."},
               {"routers_per_group", whole(1, kMostNodes), "required", "Routers of a group."},
               {"nodes_per_router", whole(1, kMostNodes), "required", "Nodes on a router."},
               {"cables", whole(1, 1000), "1",
                "Cables between each pair of groups; the sum of both nodes' numbers says which."},
               {"local", object("cluster.link"), "required", "Between two routers of a group."},
               {"global", object("cluster.link"), "required", "A cable."}}};
}

FatTree read_fat_tree(Section& reader, const Cluster& cluster) {
  FatTree tree;
  tree.nodes_per_leaf = reader.required_count("nodes_per_leaf", "a whole number");
  if (reader.get("leaves_per_pod")) tree.leaves_per_pod = reader.count("leaves_per_pod", 1);
  const bool rails = reader.boolean("rail_optimised");
  // Uplinks are counted in cards; a machine without any is a mistake that is told below.
  const Machine& machine = cluster.machines.front();
  const int cards = std::max(machine.cards_per_node, 1);
  tree.rails = rails ? cards : 0;
  const int below = tree.nodes_per_leaf * (rails ? 1 : cards);
  tree.leaf = uplinks_for(below, std::max(machine.card_bandwidth, BytesPerSecond(1)),
                          reader.number("oversubscription"));
  const double of_pod = reader.number("pod_oversubscription");
  if (tree.leaves_per_pod > 0) {
    tree.pod = uplinks_for(tree.leaves_per_pod, tree.leaf.bandwidth, of_pod);
  } else if (const auto node = reader.get("pod_oversubscription")) {
    report(reader.diagnostics(), *node, "a tree without pods; expected \"leaves_per_pod\" too");
  }
  tree.hop_latency = read_delay(reader, "hop_latency");
  tree.paths = reader.choice("paths") == 0 ? PathChoice::Destination : PathChoice::Hash;
  return tree;
}

Dragonfly read_dragonfly(Section& reader) {
  Dragonfly fly;
  fly.groups = reader.required_count("groups", "a whole number");
  fly.routers_per_group = reader.required_count("routers_per_group", "a whole number");
  fly.nodes_per_router = reader.required_count("nodes_per_router", "a whole number");
  fly.cables = reader.count("cables");
  fly.local = read_speed(reader, "local");
  fly.global = read_speed(reader, "global");
  return fly;
}

void read_dimensions(Section& reader, Torus& torus) {
  const auto node = reader.require("dimensions", "a list of ring sizes such as [4, 4, 2]");
  if (!node) return;
  std::int64_t product = 1;
  for (const JsonNode& ring : reader.items_at("dimensions", *node, "wrong list of dimensions",
                                              "ring sizes such as [4, 4, 2]")) {
    torus.dimensions.push_back(reader.count_at("dimensions", ring).value_or(1));
    product = std::min(product * torus.dimensions.back(), std::int64_t{kMostNodes} + 1);
  }
  if (product > kMostNodes) {
    report(reader.diagnostics(), *node,
           "too large; expected at most 1000000 in all, got " + shape(torus));
  }
}

Torus read_torus(Section& reader, const Cluster& cluster) {
  Torus torus;
  read_dimensions(reader, torus);
  torus.of_devices = reader.choice("of") == 1;
  torus.link = read_speed(reader, "link");
  if (torus.of_devices && cluster.machines.front().cards_per_node > 0) {
    report(reader.diagnostics(), reader.node(),
           "nothing uses network cards on a torus of devices; expected a torus of nodes, or a "
           "machine without \"cards\"");
  }
  return torus;
}

/// Returns the rows of a square matrix, or a diagnostic. `size`: 0 until known.
bool check_square(Section& reader, std::string_view key, const JsonNode& node, std::size_t& size) {
  const std::vector<JsonNode> rows =
      reader.items_at(key, node, "no matrix", "rows, one for each site");
  if (rows.empty()) return false;
  Diagnostics& diagnostics = reader.diagnostics();
  if (size == 0) size = rows.size();
  if (rows.size() != size) {
    report(diagnostics, node,
           "wrong size; expected " + std::to_string(size) + " rows as in \"delay\", got " +
               std::to_string(rows.size()));
    return false;
  }
  bool square = true;
  for (std::size_t i = 0; i < size; ++i) {
    const JsonValue& row = *rows[i].value;
    if (row.kind == JsonValue::Kind::Array && row.items.size() == size) continue;
    report(diagnostics, rows[i],
           "wrong row; expected a list of " + std::to_string(size) +
               " values, one for each site, or null where there is no connection");
    square = false;
  }
  return square;
}

/// Returns one connection; no bandwidth if both say null.
LinkSpeed read_connection(const JsonNode& delay, const JsonNode& bandwidth,
                          Diagnostics& diagnostics) {
  const bool no_delay = delay.value->kind == JsonValue::Kind::Null;
  const bool no_bandwidth = bandwidth.value->kind == JsonValue::Kind::Null;
  if (no_delay && no_bandwidth) return {};
  if (no_delay || no_bandwidth) {
    report(diagnostics, no_delay ? delay : bandwidth,
           std::string("half a connection; expected a ") + (no_delay ? "delay" : "bandwidth") +
               ", or null in both matrices");
    return {};
  }
  return {delay_at(delay, diagnostics), bandwidth_at(bandwidth, diagnostics)};
}

Wan read_wan(Section& reader) {
  reader.get("nodes");
  const auto delay = reader.require("delay", "a matrix of delays, one row for each site");
  const auto bandwidth = reader.require("bandwidth", "a matrix of bandwidths, one row a site");
  if (!delay || !bandwidth) return {};
  Diagnostics& diagnostics = reader.diagnostics();
  std::size_t size = 0;
  const bool known = check_square(reader, "delay", *delay, size);
  if (!check_square(reader, "bandwidth", *bandwidth, size) || !known) return {};
  std::vector<LinkSpeed> links;
  const std::size_t before = diagnostics.messages().size();
  for (std::size_t from = 0; from < size; ++from) {
    const JsonNode delays = delay->item(from);
    const JsonNode bandwidths = bandwidth->item(from);
    for (std::size_t to = 0; to < size; ++to) {
      links.push_back(read_connection(delays.item(to), bandwidths.item(to), diagnostics));
    }
  }
  if (diagnostics.messages().size() != before || diagnostics.full()) return {};
  Wan wan = join_sites(static_cast<int>(size), std::move(links));
  if (const auto nodes = reader.get("nodes")) {
    for (const JsonNode& count :
         reader.items_at("nodes", *nodes, "wrong list of nodes", "numbers, one for each site")) {
      wan.nodes.push_back(reader.count_at("nodes", count).value_or(1));
    }
    if (wan.nodes.size() != size) {
      report(diagnostics, *nodes,
             "expected the nodes of each of the " + std::to_string(size) + " sites, got " +
                 std::to_string(wan.nodes.size()) + " numbers");
      return {};
    }
  }
  if (const auto pair = disconnected(wan)) {
    report(diagnostics, *bandwidth,
           "disconnected: site " + std::to_string(pair->first) + " cannot reach site " +
               std::to_string(pair->second) +
               "; expected a connection between them, or a way over other sites");
  }
  return wan;
}

/// Returns true if cards, and the devices that share each, are the same in all machines.
bool cards_are_alike(const Cluster& cluster) {
  const Machine& first = cluster.machines.front();
  return std::all_of(cluster.machines.begin(), cluster.machines.end(), [&](const Machine& other) {
    return other.cards_per_node == first.cards_per_node &&
           other.devices_per_node == first.devices_per_node &&
           other.card_bandwidth == first.card_bandwidth;
  });
}

}  // namespace

const std::vector<ContractObject>& network_contract() {
  using namespace contract;
  const ContractType connections = list(list(either({text("9 ms"), nothing()})), 1, 256);
  static const std::vector<ContractObject> objects = {
      {.name = "cluster.network.switch",
       .meaning = "One switch without limits of its own; messages meet only in cards.",
       .keys = {network_kind("switch")}},
      fat_tree_object(),
      dragonfly_object(),
      {.name = "cluster.network.torus",
       .meaning = "A grid whose rows are rings. Messages go along the first dimension, then the "
                  "next, the shorter way round.",
       .keys = {network_kind("torus"),
                {"dimensions", list(whole(1, kMostNodes), 1, 6), "required",
                 "Sizes of the rings, which multiply to the nodes (or devices); the first counts "
                 "fastest."},
                {"of", one_of({"nodes", "devices"}), "nodes",
                 "What the grid joins: nodes, which have cards into it, or the devices themselves, "
                 "without ports and cards."},
                {"link", object("cluster.link"), "required", "Between neighbours."}}},
      {.name = "cluster.network.wan",
       .meaning = "Sites far apart; the nodes are divided among them in order. Where there is no "
                  "connection, messages go over other sites, on the way of least delay.",
       .keys = {network_kind("wan"),
                {"delay", connections, "required",
                 "A row for each site, in it the delay to each site, added to that of the cards; "
                 "`null`: no connection."},
                {"bandwidth", connections, "required",
                 "Bandwidths in the same form, which all nodes of a site share; on the diagonal, "
                 "what nodes of one site share."},
                {"nodes", list(whole(1, kMostNodes), 1, 256), "as many at each site",
                 "Nodes of each site."}}}};
  return objects;
}

ContractKey network_key(const std::string& otherwise) {
  std::vector<ContractType> forms;
  for (const ContractObject& kind : network_contract()) {
    forms.push_back(contract::object(kind.name));
  }
  return {"network", contract::either(forms), otherwise, "What joins the cards of the nodes."};
}

const ContractObject& pcie_object() {
  using namespace contract;
  static const ContractObject rows = {
      .name = "cluster.pcie",
      .meaning =
          "The PCIe tree of a node. Messages between sockets cross both uplinks and the "
          "socket link; a card sits beside the first device that uses it.",
      .keys = {{"sockets", whole(1, 1024), "1", "Host bridges of a node."},
               {"switches", whole(1, 1024), "one for each socket", "PCIe switches of a node."},
               {"uplink", object("cluster.link"), "devices sit on host bridges themselves",
                "From a switch to its host bridge. Required with more switches than sockets."},
               {"socket_link", object("cluster.link"), "required with more than one socket",
                "Between two sockets."}}};
  return rows;
}

void read_network(const JsonNode& node, Cluster& cluster, Diagnostics& diagnostics) {
  std::vector<std::string> kinds;
  for (const ContractObject& one : network_contract()) {
    kinds.push_back(contract_names(one, "kind").front());
  }
  cluster.network = IdealSwitch();
  const auto written = ObjectReader(node, diagnostics)
                           .require("kind", "\"switch\", \"fat-tree\", \"dragonfly\", ...");
  if (!written) return;
  const auto kind = read_choice(*written, kinds, diagnostics);
  if (!kind) return;
  Section reader(network_contract()[static_cast<std::size_t>(*kind)], node, diagnostics);
  reader.get("kind");
  const std::size_t before = diagnostics.messages().size();
  Network network;
  if (*kind == 1) {
    network = read_fat_tree(reader, cluster);
  } else if (*kind == 2) {
    network = read_dragonfly(reader);
  } else if (*kind == 3) {
    network = read_torus(reader, cluster);
  } else if (*kind == 4) {
    network = read_wan(reader);
  }
  reader.finish();
  const auto* torus = std::get_if<Torus>(&network);
  const bool of_devices = torus != nullptr && torus->of_devices;
  if (!of_devices && cluster.machines.front().cards_per_node == 0) {
    report(diagnostics, node, "there are no network cards to join; expected \"cards\" too");
  }
  if (std::holds_alternative<FatTree>(network) && !cards_are_alike(cluster)) {
    report(diagnostics, node,
           "a fat tree joins nodes whose cards are alike, and those of the machines differ; "
           "expected \"switch\", \"dragonfly\", \"torus\" or \"wan\"");
  }
  if (diagnostics.messages().size() == before && !diagnostics.full()) {
    cluster.network = std::move(network);
  }
}

namespace {

/// Reads the optional "pcie" of a machine.
void read_pcie(Section& parent, Machine& machine) {
  const auto node = parent.get("pcie");
  if (!node) return;
  Diagnostics& diagnostics = parent.diagnostics();
  Section reader(pcie_object(), *node, diagnostics);
  // A node has at most as many of each as devices.
  const auto count = [&](std::string_view key, int otherwise) {
    const auto written = reader.get(key);
    if (!written) return otherwise;
    return read_count(*written, 1, machine.devices_per_node, diagnostics).value_or(otherwise);
  };
  PcieTree tree;
  tree.sockets = count("sockets", 1);
  tree.switches = count("switches", tree.sockets);
  if (tree.switches > tree.sockets || reader.get("uplink")) {
    tree.uplink = read_speed(reader, "uplink");
  }
  if (tree.sockets > 1 || reader.get("socket_link")) {
    tree.socket_link = read_speed(reader, "socket_link");
  }
  reader.finish();
  if (tree.switches % tree.sockets == 0 && machine.devices_per_node % tree.switches == 0) {
    machine.pcie = tree;
    return;
  }
  report(diagnostics, *node,
         "a tree that is not even; expected as many switches for each socket and devices for each "
         "switch, got " +
             std::to_string(machine.devices_per_node) + " devices, " +
             std::to_string(tree.switches) + " switches and " + std::to_string(tree.sockets) +
             " sockets");
}

}  // namespace

ContractKey node_topology_key() {
  using namespace contract;
  return {"node_topology", one_of({"switch", "pairs"}), "switch",
          "What joins the devices of a node, where it is no PCIe tree. `switch`: an ideal one. "
          "`pairs`: each pair has a link of its own, with the port's bandwidth over the number of "
          "the others (boards of four GPUs without NVSwitch, MI300X). Rings of collectives use all "
          "links between their members of a node."};
}

void read_node_links(Section& reader, const Network& network, Machine& machine) {
  read_pcie(reader, machine);
  if (reader.choice("node_topology") == 0) return;
  const auto* torus = std::get_if<Torus>(&network);
  if (machine.pcie || (torus != nullptr && torus->of_devices)) {
    report(reader.diagnostics(), *reader.get("node_topology"),
           std::string("devices on a ") + (machine.pcie ? "PCIe tree" : "torus") +
               " have no links by pairs; expected \"switch\"");
    return;
  }
  // The boards are as the file has them; a scenario may use a part of their devices.
  const int all = std::max(reader.count("devices_per_node"), machine.devices_per_node);
  machine.pair_bandwidth = machine.port_bandwidth / std::max(1, all - 1);
}

ContractKey collectives_key() {
  return {"collectives", contract::one_of({"links", "calibrated"}), "links",
          "`calibrated`: those inside a node take the times that the device's calibration measured "
          "among as many; where it did not, and else, what the links say."};
}

void read_collectives_key(Section& reader, Cluster& cluster) {
  cluster.calibrated_collectives = reader.choice("collectives") == 1;
  if (!cluster.calibrated_collectives) return;
  const JsonNode node = reader.node().child("collectives");
  if (!is_calibrated(cluster) || front_device(cluster).calibrated->collectives.empty()) {
    report(reader.diagnostics(), node,
           "the device's calibration has no \"network\"; expected \"links\", or devices of one "
           "kind between which interlock calibrate has measured collectives");
  }
  if (cluster.executor.links != RealDevices::Links::Emulated) return;
  report(reader.diagnostics(), node,
         "emulated links take what the scenario says of them; expected \"links\"");
}

}  // namespace interlock
