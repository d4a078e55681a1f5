// Reads networks and PCIe trees; what they must hold whatever the number of nodes.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/networks/network_reader.h"

#include "hardware/devices/catalogue_file.h"

namespace interlock {
namespace {

constexpr int kMostNodes = 1'000'000;
constexpr int kMostPerSwitch = 100'000;
constexpr int kMostSites = 256;

int required_count(ObjectReader& reader, std::string_view key, int most) {
  const auto node = reader.require(key, "a whole number");
  if (!node) return 1;
  return read_count(*node, 1, most, reader.diagnostics()).value_or(1);
}

PathChoice read_paths(ObjectReader& reader) {
  const int choice = reader.choice("paths", {"destination", "hash"}, 0);
  return choice == 0 ? PathChoice::Destination : PathChoice::Hash;
}

FatTree read_fat_tree(ObjectReader& reader, const Cluster& cluster) {
  FatTree tree;
  tree.nodes_per_leaf = required_count(reader, "nodes_per_leaf", kMostPerSwitch);
  if (reader.get("leaves_per_pod")) {
    tree.leaves_per_pod = required_count(reader, "leaves_per_pod", kMostPerSwitch);
  }
  const bool rails = reader.boolean("rail_optimised", false);
  tree.rails = rails ? cluster.cards_per_node : 0;
  const int below = tree.nodes_per_leaf * (rails ? 1 : cluster.cards_per_node);
  tree.leaf =
      uplinks_for(below, cluster.card_bandwidth, reader.number("oversubscription", 1, 0.1, 1000));
  const double of_pod = reader.number("pod_oversubscription", 1, 0.1, 1000);
  if (tree.leaves_per_pod > 0) {
    tree.pod = uplinks_for(tree.leaves_per_pod, tree.leaf.bandwidth, of_pod);
  } else if (const auto node = reader.get("pod_oversubscription")) {
    report(reader.diagnostics(), *node, "a tree without pods; expected \"leaves_per_pod\" too");
  }
  tree.hop_latency = read_delay(reader, "hop_latency");
  tree.paths = read_paths(reader);
  return tree;
}

Dragonfly read_dragonfly(ObjectReader& reader) {
  Dragonfly fly;
  fly.groups = required_count(reader, "groups", kMostNodes);
  fly.routers_per_group = required_count(reader, "routers_per_group", kMostNodes);
  fly.nodes_per_router = required_count(reader, "nodes_per_router", kMostNodes);
  fly.cables = reader.count("cables", 1, 1, 1000);
  fly.local = read_speed(reader, "local");
  fly.global = read_speed(reader, "global");
  return fly;
}

void read_dimensions(ObjectReader& reader, Torus& torus) {
  constexpr std::size_t kMostDimensions = 6;
  const std::string expected = "a list of 1 to 6 ring sizes such as [4, 4, 2]";
  const auto node = reader.require("dimensions", expected);
  if (!node) return;
  const auto& items = node->value->items;
  if (node->value->kind != JsonValue::Kind::Array || items.empty() ||
      items.size() > kMostDimensions) {
    report(reader.diagnostics(), *node, "no dimensions; expected " + expected);
    return;
  }
  std::int64_t product = 1;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto ring = read_count(node->item(i), 1, kMostNodes, reader.diagnostics());
    torus.dimensions.push_back(ring.value_or(1));
    product = std::min(product * torus.dimensions.back(), std::int64_t{kMostNodes} + 1);
  }
  if (product > kMostNodes) {
    report(reader.diagnostics(), *node,
           "too large; expected at most 1000000 in all, got " + shape(torus));
  }
}

Torus read_torus(ObjectReader& reader, const Cluster& cluster) {
  Torus torus;
  read_dimensions(reader, torus);
  torus.of_devices = reader.choice("of", {"nodes", "devices"}, 0) == 1;
  torus.link = read_speed(reader, "link");
  if (torus.of_devices && cluster.cards_per_node > 0) {
    report(reader.diagnostics(), reader.node(),
           "nothing uses network cards on a torus of devices; expected a torus of nodes, or a "
           "machine without \"cards\"");
  }
  return torus;
}

/// The rows of a square matrix, or a diagnostic. `size`: 0 until known.
bool check_square(const JsonNode& node, std::size_t& size, Diagnostics& diagnostics) {
  const auto& rows = node.value->items;
  if (node.value->kind != JsonValue::Kind::Array || rows.empty() || rows.size() > kMostSites) {
    report(diagnostics, node, "no matrix; expected a list of 1 to 256 rows, one for each site");
    return false;
  }
  if (size == 0) size = rows.size();
  if (rows.size() != size) {
    report(diagnostics, node,
           "wrong size; expected " + std::to_string(size) + " rows as in \"delay\", got " +
               std::to_string(rows.size()));
    return false;
  }
  bool square = true;
  for (std::size_t i = 0; i < size; ++i) {
    if (rows[i].kind == JsonValue::Kind::Array && rows[i].items.size() == size) continue;
    report(diagnostics, node.item(i),
           "wrong row; expected a list of " + std::to_string(size) +
               " values, one for each site, or null where there is no connection");
    square = false;
  }
  return square;
}

/// One connection; no bandwidth if both say null.
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

Wan read_wan(ObjectReader& reader) {
  const auto delay = reader.require("delay", "a matrix of delays, one row for each site");
  const auto bandwidth = reader.require("bandwidth", "a matrix of bandwidths, one row a site");
  if (!delay || !bandwidth) return {};
  Diagnostics& diagnostics = reader.diagnostics();
  std::size_t size = 0;
  const bool known = check_square(*delay, size, diagnostics);
  if (!check_square(*bandwidth, size, diagnostics) || !known) return {};
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
  if (const auto pair = disconnected(wan)) {
    report(diagnostics, *bandwidth,
           "disconnected: site " + std::to_string(pair->first) + " cannot reach site " +
               std::to_string(pair->second) +
               "; expected a connection between them, or a way over other sites");
  }
  return wan;
}

}  // namespace

void read_network(const JsonNode& node, Cluster& cluster, Diagnostics& diagnostics) {
  static const std::vector<std::string> kinds = {"switch", "fat-tree", "dragonfly", "torus", "wan"};
  cluster.network = IdealSwitch();
  ObjectReader reader(node, diagnostics);
  const auto written = reader.require("kind", "\"switch\", \"fat-tree\", \"dragonfly\", ...");
  if (!written) return;
  const auto kind = read_choice(*written, kinds, diagnostics);
  if (!kind) return;
  const std::size_t before = diagnostics.messages().size();
  Network network;
  if (*kind == 1) {
    // Uplinks are counted in cards; without any this is a mistake that is told below.
    Cluster with_cards = cluster;
    with_cards.cards_per_node = std::max(cluster.cards_per_node, 1);
    with_cards.card_bandwidth = std::max(cluster.card_bandwidth, BytesPerSecond(1));
    network = read_fat_tree(reader, with_cards);
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
  if (!of_devices && cluster.cards_per_node == 0) {
    report(diagnostics, node, "there are no network cards to join; expected \"cards\" too");
  }
  if (diagnostics.messages().size() == before && !diagnostics.full()) {
    cluster.network = std::move(network);
  }
}

void read_pcie(ObjectReader& parent, Cluster& cluster) {
  const auto node = parent.get("pcie");
  if (!node) return;
  Diagnostics& diagnostics = parent.diagnostics();
  ObjectReader reader(*node, diagnostics);
  PcieTree tree;
  tree.sockets = reader.count("sockets", 1, 1, cluster.devices_per_node);
  tree.switches = reader.count("switches", tree.sockets, 1, cluster.devices_per_node);
  if (tree.switches > tree.sockets || reader.get("uplink")) {
    tree.uplink = read_speed(reader, "uplink");
  }
  if (tree.sockets > 1 || reader.get("socket_link")) {
    tree.socket_link = read_speed(reader, "socket_link");
  }
  reader.finish();
  if (tree.switches % tree.sockets == 0 && cluster.devices_per_node % tree.switches == 0) {
    cluster.pcie = tree;
    return;
  }
  report(diagnostics, *node,
         "a tree that is not even; expected as many switches for each socket and devices for each "
         "switch, got " +
             std::to_string(cluster.devices_per_node) + " devices, " +
             std::to_string(tree.switches) + " switches and " + std::to_string(tree.sockets) +
             " sockets");
}

}  // namespace interlock
