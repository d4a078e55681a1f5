// Rings over members and nodes, and chains made of them.
// SPDX-License-Identifier: Apache-2.0
//
// Each channel's ring enters a node at its entry, goes round the members, leaves from the one
// before the entry, and goes on to another entry of the next node. With as many members in all
// nodes the bytes of a channel leave one member for its counterpart. In a node whose devices are
// joined by pairs rings of all orders share the bytes.
#include <algorithm>

#include "hardware/collectives/algorithms.h"

namespace interlock {
namespace {

double share_of(CollectiveKind kind, int members) {
  const double others = members - 1;
  switch (kind) {
    case CollectiveKind::AllReduce:
      return 2 * others / members;
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
      return others / members;
    default:
      return 1;
  }
}

/// A ring is open by one hop: what starts at a member ends at the one before it. Times are those
/// of the slowest way: without the least hop.
struct Hops {
  Seconds sum;
  Seconds least;
  bool any = false;

  void add(Seconds latency) {
    sum += latency;
    least = any ? std::min(least, latency) : latency;
    any = true;
  }
  Seconds open() const { return sum - least; }
};

/// Adds the edges inside one of several nodes; returns the hops of the slowest channel.
Hops pass_node(const Cluster& cluster, const Grouping& grouping, const std::vector<int>& node,
               Bytes bytes, Traffic& traffic) {
  const int size = static_cast<int>(node.size());
  Hops hops;
  if (size == 1) return hops;
  for (int local = 0; local < size; ++local) {
    const int before = (local + size - 1) % size;
    add_step(cluster, node, before, local, bytes * share_from_before(grouping, size, local),
             traffic);
    hops.add(hop(cluster, node[before], node[local]));
  }
  return hops;
}

/// Adds the edges from one node to the next; returns the slowest.
Seconds pass_on(const Cluster& cluster, const Grouping& grouping, std::size_t node, Bytes bytes,
                Traffic& traffic) {
  const std::vector<int>& here = grouping.nodes[node];
  const std::vector<int>& there = grouping.nodes[(node + 1) % grouping.nodes.size()];
  Seconds slowest;
  for (int channel = 0; channel < grouping.channels; ++channel) {
    const int from = here[entry(grouping, static_cast<int>(here.size()), channel + 1) - 1];
    const int to = there[entry(grouping, static_cast<int>(there.size()), channel)];
    add_flow(traffic, from, to, bytes / grouping.channels);
    slowest = std::max(slowest, hop(cluster, from, to));
  }
  return slowest;
}

/// Returns one pass over all rings, `bytes` over each edge that all channels share.
Traffic pass(const Cluster& cluster, const Grouping& grouping, Bytes bytes) {
  if (grouping.nodes.size() == 1) return ring_pass(cluster, grouping.nodes[0], bytes);
  Traffic traffic;
  Hops ring;
  for (std::size_t node = 0; node < grouping.nodes.size(); ++node) {
    const Hops inside = pass_node(cluster, grouping, grouping.nodes[node], bytes, traffic);
    if (inside.any) {
      // One hop of the node is left out by each channel; the least is left out of the whole ring.
      ring.add(inside.least);
      ring.sum += inside.open() - inside.least;
    }
    ring.add(pass_on(cluster, grouping, node, bytes, traffic));
  }
  traffic.latency = ring.open();
  return traffic;
}

}  // namespace

Traffic ring_pass(const Cluster& cluster, const std::vector<int>& members, Bytes over_each_edge) {
  Traffic traffic;
  Hops hops;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::size_t next = (i + 1) % members.size();
    add_step(cluster, members, i, next, over_each_edge, traffic);
    hops.add(hop(cluster, members[i], members[next]));
  }
  traffic.latency = hops.open();
  return traffic;
}

Traffic ring_traffic(const Cluster& cluster, const Grouping& grouping, CollectiveKind kind,
                     Bytes bytes) {
  Traffic traffic = pass(cluster, grouping, bytes * share_of(kind, grouping.members));
  if (kind == CollectiveKind::AllReduce) traffic.latency *= 2;
  if (kind == CollectiveKind::Broadcast || kind == CollectiveKind::Reduce) {
    const int root = grouping.nodes[0][0];
    const auto into_root = [root](const Flow& flow) { return flow.to == root; };
    traffic.flows.erase(std::remove_if(traffic.flows.begin(), traffic.flows.end(), into_root),
                        traffic.flows.end());
    if (kind == CollectiveKind::Reduce) reverse(traffic);
  }
  return traffic;
}

}  // namespace interlock
