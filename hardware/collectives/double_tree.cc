// Two trees over the nodes, each for half of the bytes, and chains inside the nodes.
// SPDX-License-Identifier: Apache-2.0
//
// In a tree over places 0, 1, 2, ... in order, only odd places have children. The second tree has
// every node one place further on, so that no node has children in both. Members of one node are
// taken for nodes themselves, since a chain over them would be no tree.
#include <algorithm>
#include <bit>
#include <functional>

#include "hardware/collectives/algorithms.h"

namespace interlock {
namespace {

struct Branch {
  int parent = 0;  // -1: the root
  int child = 0;
};

/// Returns a tree over `places` in order, parents before their children; floor(log2 places) levels
/// deep.
std::vector<Branch> grow_tree(int places) {
  struct Span {
    int first;
    int size;
    int parent;
  };
  std::vector<Branch> tree;
  std::vector<Span> spans = {{0, places, -1}};
  while (!spans.empty()) {
    const Span span = spans.back();
    spans.pop_back();
    if (span.size == 0) continue;
    const auto left = static_cast<int>(std::bit_floor(static_cast<unsigned>(span.size))) - 1;
    const int root = span.first + left;
    tree.push_back({span.parent, root});
    spans.push_back({span.first, left, root});
    spans.push_back({root + 1, span.size - left - 1, root});
  }
  return tree;
}

enum class Directions { Down, Both };

struct TreeBuilder {
  const Cluster& cluster;
  const Grouping& grouping;
  Directions directions;
  Traffic& traffic;

  int head(int node, int channel) const {
    const std::vector<int>& members = grouping.nodes[static_cast<std::size_t>(node)];
    return members[entry(grouping, static_cast<int>(members.size()), channel)];
  }

  /// Joins two nodes by all channels; returns the slowest.
  Seconds join(int parent, int child, Bytes bytes) const {
    Seconds slowest;
    for (int channel = 0; channel < grouping.channels; ++channel) {
      const int up = head(parent, channel);
      const int down = head(child, channel);
      add_flow(traffic, up, down, bytes / grouping.channels);
      if (directions == Directions::Both) add_flow(traffic, down, up, bytes / grouping.channels);
      slowest = std::max(slowest, hop(cluster, up, down));
    }
    return slowest;
  }

  /// Grows a tree over `places` nodes; `node_at` says which is where, -1 (the root's parent)
  /// included: a node of its own, or itself for none. Returns the latency from top to bottom.
  Seconds plant(int places, Bytes bytes, const std::function<int(int)>& node_at) const {
    std::vector<Seconds> arrival(static_cast<std::size_t>(places) + 1);  // by place + 1
    Seconds last;
    for (const Branch& branch : grow_tree(places)) {
      if (node_at(branch.parent) < 0) continue;
      Seconds& mine = arrival[static_cast<std::size_t>(branch.child) + 1];
      mine = arrival[static_cast<std::size_t>(branch.parent) + 1] +
             join(node_at(branch.parent), node_at(branch.child), bytes);
      last = std::max(last, mine);
    }
    return last;
  }

  /// Chains inside a node, one for each channel from its head; returns the slowest.
  Seconds chain(const std::vector<int>& node, Bytes bytes) const {
    const int size = static_cast<int>(node.size());
    if (size == 1) return {};
    Seconds sum;
    Seconds least;
    for (int local = 0; local < size; ++local) {
      const int before = (local + size - 1) % size;
      const Bytes share = bytes * share_from_before(grouping, size, local);
      add_step(cluster, node, before, local, share, traffic);
      if (directions == Directions::Both) add_step(cluster, node, local, before, share, traffic);
      const Seconds latency = hop(cluster, node[before], node[local]);
      sum += latency;
      least = local == 0 ? latency : std::min(least, latency);
    }
    return sum - least;
  }

  /// Returns the chain from the first member, in the node of a broadcast's root.
  Seconds chain_from_root(const std::vector<int>& node, Bytes bytes) const {
    Seconds sum;
    Traffic steps;
    for (std::size_t local = 1; local < node.size(); ++local) {
      add_step(cluster, node, local - 1, local, bytes, steps);
      sum += hop(cluster, node[local - 1], node[local]);
    }
    for (const Flow& flow : steps.flows) {
      if (flow.to != node[0]) traffic.flows.push_back(flow);  // the root has all
    }
    return sum;
  }
};

void all_reduce(const TreeBuilder& build, Bytes bytes) {
  const auto nodes = static_cast<int>(build.grouping.nodes.size());
  const Seconds first = build.plant(nodes, bytes / 2, [](int place) { return place; });
  const Seconds second = build.plant(nodes, bytes / 2, [nodes](int place) {
    return place < 0 ? -1 : (place + nodes - 1) % nodes;
  });
  Seconds inside;
  for (const std::vector<int>& node : build.grouping.nodes) {
    inside = std::max(inside, build.chain(node, bytes));
  }
  build.traffic.latency = 2 * (std::max(first, second) + inside);
}

/// The root's node feeds both trees, which are over the others.
void broadcast(const TreeBuilder& build, Bytes bytes) {
  const auto others = static_cast<int>(build.grouping.nodes.size()) - 1;
  const Seconds first = build.plant(others, bytes / 2, [](int place) { return place + 1; });
  const Seconds second = build.plant(others, bytes / 2, [others](int place) {
    return place < 0 ? 0 : (place + others - 1) % others + 1;
  });
  Seconds inside;
  for (int node = 1; node <= others; ++node) {
    inside =
        std::max(inside, build.chain(build.grouping.nodes[static_cast<std::size_t>(node)], bytes));
  }
  build.traffic.latency =
      build.chain_from_root(build.grouping.nodes[0], bytes) + std::max(first, second) + inside;
}

}  // namespace

Traffic tree_traffic(const Cluster& cluster, const Grouping& grouping, CollectiveKind kind,
                     Bytes bytes) {
  if (grouping.nodes.size() == 1) return tree_traffic(cluster, one_by_one(grouping), kind, bytes);
  Traffic traffic;
  const bool both = kind == CollectiveKind::AllReduce;
  const TreeBuilder build{cluster, grouping, both ? Directions::Both : Directions::Down, traffic};
  if (both) {
    all_reduce(build, bytes);
  } else {
    broadcast(build, bytes);
  }
  if (kind == CollectiveKind::Reduce) reverse(traffic);
  return traffic;
}

}  // namespace interlock
