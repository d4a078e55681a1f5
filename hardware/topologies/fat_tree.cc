// Routes of fat trees: up to the lowest switch that two leaves have above them, and down again.
// SPDX-License-Identifier: Apache-2.0
//
// Numbering: 4 * (number of the link on its level) + 2 * level + direction.
#include "hardware/topologies/fat_tree.h"

#include <cmath>

#include "base/error.h"
#include "base/random.h"

namespace interlock {
namespace {

/// Which link on its level: "above" counts the uplinks of one switch.
LinkId leaf_link(const FatTree& tree, LinkId leaf, std::int64_t above, LinkDirection direction) {
  return 4 * (leaf * tree.leaf.count + above) + direction;
}

LinkId pod_link(const FatTree& tree, LinkId aggregation, std::int64_t above,
                LinkDirection direction) {
  return 4 * (aggregation * tree.pod.count + above) + 2 + direction;
}

/// Returns a number whose remainder by the count of equal paths names the path.
std::uint64_t path_number(PathChoice choice, const Passage& passage) {
  if (choice == PathChoice::Destination) return static_cast<std::uint64_t>(passage.target);
  return mix64((static_cast<std::uint64_t>(passage.from) << 32) +
               static_cast<std::uint64_t>(passage.to));
}

int planes(const FatTree& tree) { return std::max(tree.rails, 1); }

}  // namespace

Uplinks uplinks_for(int below, BytesPerSecond bandwidth, double oversubscription) {
  CHECK(below >= 1 && oversubscription > 0, "a switch with links down and a ratio above zero");
  const BytesPerSecond all = bandwidth * (below / oversubscription);
  const double count = std::max(1.0, std::round(all / bandwidth));
  return {static_cast<int>(count), all / count};
}

void cross(const FatTree& tree, const Passage& passage, LinkId first, Route& route) {
  const int plane = tree.rails > 0 ? passage.card : 0;
  const LinkId from_leaf = passage.from_node / tree.nodes_per_leaf;
  const LinkId to_leaf = passage.to_node / tree.nodes_per_leaf;
  if (from_leaf == to_leaf) return;
  const std::uint64_t number = path_number(tree.paths, passage);
  const auto choices = static_cast<std::uint64_t>(tree.leaf.count);
  const auto above = static_cast<std::int64_t>(number % choices);
  const auto switch_of = [&](LinkId leaf) { return leaf * planes(tree) + plane; };
  cross(route, first + leaf_link(tree, switch_of(from_leaf), above, Up), tree.leaf.bandwidth);
  int hops = 2;
  const LinkId from_pod = tree.leaves_per_pod > 0 ? from_leaf / tree.leaves_per_pod : 0;
  const LinkId to_pod = tree.leaves_per_pod > 0 ? to_leaf / tree.leaves_per_pod : 0;
  if (from_pod != to_pod) {
    const auto cores = static_cast<std::uint64_t>(tree.pod.count);
    const auto core = static_cast<std::int64_t>(number / choices % cores);
    const auto aggregation_of = [&](LinkId pod) {
      return (pod * planes(tree) + plane) * tree.leaf.count + above;
    };
    cross(route, first + pod_link(tree, aggregation_of(from_pod), core, Up), tree.pod.bandwidth);
    cross(route, first + pod_link(tree, aggregation_of(to_pod), core, Down), tree.pod.bandwidth);
    hops = 4;
  }
  cross(route, first + leaf_link(tree, switch_of(to_leaf), above, Down), tree.leaf.bandwidth);
  route.latency += hops * tree.hop_latency;
}

Link link(const FatTree& tree, LinkId id) {
  const bool of_pod = id / 2 % 2 == 1;
  const Uplinks& uplinks = of_pod ? tree.pod : tree.leaf;
  const LinkId above = id / 4 % uplinks.count;
  const LinkId below = id / 4 / uplinks.count;  // the leaf, or the aggregation switch, and plane
  const LinkId pod_or_leaf = (of_pod ? below / tree.leaf.count : below) / planes(tree);
  const LinkId plane = (of_pod ? below / tree.leaf.count : below) % planes(tree);
  std::string name = tree.rails > 0 ? "rail" + std::to_string(plane) + " " : "";
  if (of_pod) {
    name += "pod" + std::to_string(pod_or_leaf) + " agg" + std::to_string(below % tree.leaf.count) +
            " core" + std::to_string(above);
  } else {
    name += "leaf" + std::to_string(pod_or_leaf) + (tree.leaves_per_pod > 0 ? " agg" : " spine") +
            std::to_string(above);
  }
  return {name + direction_name(id), uplinks.bandwidth};
}

}  // namespace interlock
