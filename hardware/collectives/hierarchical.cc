// Collectives in phases: inside the nodes, then between equal members of the nodes, or the reverse.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hardware/collectives/algorithms.h"

namespace interlock {
namespace {

/// Rings over sets of members, all at once.
Traffic rings(const Cluster& cluster, const std::vector<std::vector<int>>& sets, Bytes bytes) {
  Traffic traffic;
  Seconds slowest;
  for (const std::vector<int>& set : sets) {
    append(traffic, ring_pass(cluster, set, bytes));
    slowest = std::max(slowest, traffic.latency);
    traffic.latency = {};
  }
  traffic.latency = slowest;
  return traffic;
}

}  // namespace

std::vector<Traffic> hierarchical_phases(const Cluster& cluster, const Grouping& grouping,
                                         CollectiveKind kind, Bytes bytes) {
  const std::size_t nodes = grouping.nodes.size();
  const std::size_t size = grouping.nodes[0].size();
  std::vector<std::vector<int>> counterparts(size);  // by local index
  for (const std::vector<int>& node : grouping.nodes) {
    for (std::size_t local = 0; local < size; ++local) counterparts[local].push_back(node[local]);
  }
  const auto share = [](std::size_t members) {
    return static_cast<double>(members - 1) / static_cast<double>(members);
  };
  const Bytes part = bytes / static_cast<double>(size);
  const Traffic inside = rings(cluster, grouping.nodes, bytes * share(size));
  Traffic between = rings(cluster, counterparts, part * share(nodes));
  if (kind == CollectiveKind::AllGather) return {between, inside};
  if (kind == CollectiveKind::ReduceScatter) return {inside, between};
  for (Flow& flow : between.flows) flow.bytes *= 2;
  between.latency *= 2;
  return {inside, between, inside};
}

}  // namespace interlock
