// Checks that the nodes of a scenario fit its network; says the numbers in one sentence if not.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/networks/network_size.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace interlock {
namespace {

/// "expected 24 nodes, got 20"
std::string wrong_nodes(std::int64_t expected, int nodes) {
  return "expected " + std::to_string(expected) + (expected == 1 ? " node" : " nodes") + ", got " +
         std::to_string(nodes);
}

/// Returns why `nodes` do not fit the tree; nothing if they do.
std::string misfit(const FatTree& tree, int nodes) {
  const auto groups = [](std::int64_t parts, int size, const std::string& what) {
    return parts <= size || parts % size == 0
               ? std::string()
               : std::to_string(parts) + what + std::to_string(size) + "; expected at most " +
                     std::to_string(size) + ", or a multiple of it";
  };
  std::string told = groups(nodes, tree.nodes_per_leaf, " nodes do not fill leaves of ");
  if (!told.empty() || tree.leaves_per_pod == 0) return told;
  const int leaves = (nodes + tree.nodes_per_leaf - 1) / tree.nodes_per_leaf;
  return groups(
      leaves, tree.leaves_per_pod,
      " leaves of " + std::to_string(tree.nodes_per_leaf) + " nodes do not fill pods of ");
}

std::int64_t size(const Dragonfly& fly) {
  return std::int64_t{fly.groups} * fly.routers_per_group * fly.nodes_per_router;
}

std::string misfit(const Dragonfly& fly, int nodes) {
  if (size(fly) == nodes) return "";
  return "a dragonfly of " + std::to_string(fly.groups) + " groups x " +
         std::to_string(fly.routers_per_group) + " routers x " +
         std::to_string(fly.nodes_per_router) + " nodes; " + wrong_nodes(size(fly), nodes);
}

std::string misfit(const Torus& torus, int devices_per_node, int nodes) {
  const std::string name = "a torus of " + shape(torus);
  if (!torus.of_devices) {
    return size(torus) == nodes ? "" : name + " nodes; " + wrong_nodes(size(torus), nodes);
  }
  const std::int64_t devices = std::int64_t{nodes} * devices_per_node;
  if (size(torus) == devices) return "";
  return name + " devices; expected " + std::to_string(size(torus)) + " devices in nodes of " +
         std::to_string(devices_per_node) + ", got " + std::to_string(devices);
}

/// Lays `nodes` on the sites, evenly unless the document says how many each has. Returns why they
/// do not fit; nothing if they do.
std::string lay_on_sites(Wan& wan, int nodes) {
  if (!wan.nodes.empty()) {
    const int written = std::accumulate(wan.nodes.begin(), wan.nodes.end(), 0);
    if (written != nodes) {
      return "the sites have " + std::to_string(written) + " nodes; expected the " +
             std::to_string(nodes) + " of the cluster";
    }
    lay_nodes(wan, wan.nodes);
    return "";
  }
  if (nodes % wan.sites == 0) {
    lay_nodes(wan, std::vector<int>(static_cast<std::size_t>(wan.sites), nodes / wan.sites));
    return "";
  }
  return std::to_string(nodes) + " nodes cannot be divided among " + std::to_string(wan.sites) +
         " sites; expected a multiple of " + std::to_string(wan.sites);
}

}  // namespace

bool joins_nodes(const Cluster& cluster) {
  const auto* torus = std::get_if<Torus>(&cluster.network);
  return cluster.machines.front().cards_per_node > 0 || (torus != nullptr && torus->of_devices);
}

int nodes_joined(const Cluster& cluster) {
  const int each = cluster.machines.front().devices_per_node;
  std::int64_t nodes = 1;
  if (const auto* fly = std::get_if<Dragonfly>(&cluster.network)) {
    nodes = size(*fly);
  } else if (const auto* torus = std::get_if<Torus>(&cluster.network)) {
    nodes = size(*torus) / (torus->of_devices ? each : 1);
  } else if (const auto* wan = std::get_if<Wan>(&cluster.network)) {
    const std::vector<int>& written = wan->nodes;
    nodes = written.empty() ? wan->sites : std::accumulate(written.begin(), written.end(), 0);
  }
  const std::int64_t most = kMostDevices / each;
  return static_cast<int>(std::max<std::int64_t>(1, std::min(nodes, most)));
}

void fit_network(Cluster& cluster, int nodes, const JsonNode& where, Diagnostics& diagnostics) {
  std::string told;
  if (const auto* tree = std::get_if<FatTree>(&cluster.network)) {
    told = misfit(*tree, nodes);
  } else if (const auto* fly = std::get_if<Dragonfly>(&cluster.network)) {
    told = misfit(*fly, nodes);
  } else if (const auto* torus = std::get_if<Torus>(&cluster.network)) {
    told = misfit(*torus, cluster.machines.front().devices_per_node, nodes);
  } else if (auto* wan = std::get_if<Wan>(&cluster.network)) {
    told = lay_on_sites(*wan, nodes);
  }
  if (!told.empty()) report(diagnostics, where, told);
}

}  // namespace interlock
