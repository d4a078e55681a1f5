// Checks that the nodes of a scenario fit its network; says the numbers in one sentence if not.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/networks/network_size.h"

#include <algorithm>

#include "base/error.h"

namespace interlock {
namespace {

/// "expected 24 nodes, got 20"
std::string wrong_nodes(std::int64_t expected, int nodes) {
  return "expected " + std::to_string(expected) + (expected == 1 ? " node" : " nodes") + ", got " +
         std::to_string(nodes);
}

/// Why `nodes` do not fit the tree; nothing if they do.
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

std::string misfit(const Wan& wan, int nodes) {
  if (nodes % wan.sites == 0) return "";
  return std::to_string(nodes) + " nodes cannot be divided among " + std::to_string(wan.sites) +
         " sites; expected a multiple of " + std::to_string(wan.sites);
}

}  // namespace

bool joins_nodes(const Cluster& cluster) {
  const auto* torus = std::get_if<Torus>(&cluster.network);
  return cluster.cards_per_node > 0 || (torus != nullptr && torus->of_devices);
}

int nodes_joined(const Cluster& cluster) {
  std::int64_t nodes = 1;
  if (const auto* fly = std::get_if<Dragonfly>(&cluster.network)) {
    nodes = size(*fly);
  } else if (const auto* torus = std::get_if<Torus>(&cluster.network)) {
    nodes = size(*torus) / (torus->of_devices ? cluster.devices_per_node : 1);
  } else if (const auto* wan = std::get_if<Wan>(&cluster.network)) {
    nodes = wan->sites;
  }
  const std::int64_t most = kMostDevices / cluster.devices_per_node;
  return static_cast<int>(std::max<std::int64_t>(1, std::min(nodes, most)));
}

void fit_network(Cluster& cluster, int nodes, const JsonNode& where, Diagnostics& diagnostics) {
  std::string told;
  if (const auto* tree = std::get_if<FatTree>(&cluster.network)) {
    told = misfit(*tree, nodes);
  } else if (const auto* fly = std::get_if<Dragonfly>(&cluster.network)) {
    told = misfit(*fly, nodes);
  } else if (const auto* torus = std::get_if<Torus>(&cluster.network)) {
    told = misfit(*torus, cluster.devices_per_node, nodes);
  } else if (auto* wan = std::get_if<Wan>(&cluster.network)) {
    told = misfit(*wan, nodes);
    wan->nodes_per_site = std::max(1, nodes / wan->sites);
  }
  if (!told.empty()) report(diagnostics, where, told);
}

}  // namespace interlock
