// Collectives without a detour: every member to every other, the root to all, each to the next.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "hardware/collectives/algorithms.h"

namespace interlock {
namespace {

/// Up to this many members every pair has a flow.
constexpr int kAllPairs = 512;
constexpr int kMostPartners = 8;  // of a larger group: at least as many flows a member

/// Up to `limit` of the numbers from `first` to `last`, evenly spread.
std::vector<int> sample(int first, int last, int limit) {
  const int count = std::max(0, last - first + 1);
  const int taken = std::min(count, limit);
  std::vector<int> numbers(static_cast<std::size_t>(taken));
  std::int64_t odd = 1;
  for (int& number : numbers) {
    number = first + static_cast<int>(odd * count / (std::int64_t{2} * taken));
    odd += 2;
  }
  return numbers;
}

/// The traffic of all pairs, with the latencies of one step and of all steps in turn.
struct Pairs {
  Traffic traffic;  // latency: of the slowest pair
  Seconds in_turn;
};

/// Each sends to the one `distance` on, round the list of members.
struct Step {
  int distance = 1;
  Bytes bytes;
  double stands_for = 1;  // steps
};

void add_step(const Cluster& cluster, const std::vector<int>& members, const Step& step,
              Pairs& pairs) {
  const int count = static_cast<int>(members.size());
  Seconds slowest;
  for (int i = 0; i < count; ++i) {
    const int from = members[i];
    const int to = members[(i + step.distance) % count];
    add_flow(pairs.traffic, from, to, step.bytes);
    slowest = std::max(slowest, hop(cluster, from, to));
  }
  pairs.traffic.latency = std::max(pairs.traffic.latency, slowest);
  pairs.in_turn += slowest * step.stands_for;
}

/// Every member sends `bytes` to every other. In a large group, what it has for the others of its
/// node, and what it has for the rest, goes to a sample of them.
Pairs all_pairs(const Cluster& cluster, const Grouping& grouping, Bytes bytes) {
  Pairs pairs;
  const std::vector<int> members = in_order(grouping);
  const int count = grouping.members;
  if (count <= kAllPairs) {
    for (int distance = 1; distance < count; ++distance) {
      add_step(cluster, members, {distance, bytes}, pairs);
    }
    return pairs;
  }
  const int limit = std::max(kMostPartners, kAllPairs * kAllPairs / count);
  const auto add_sample = [&](const std::vector<int>& among, int first, int last, double others) {
    const std::vector<int> distances = sample(first, last, limit);
    if (distances.empty()) return;
    const double each = others / static_cast<double>(distances.size());
    for (const int distance : distances) {
      add_step(cluster, among, {distance, bytes * each, each}, pairs);
    }
  };
  Seconds inside;  // nodes are busy with their own members at the same time
  std::size_t largest = 0;
  for (const std::vector<int>& node : grouping.nodes) {
    const int size = static_cast<int>(node.size());
    pairs.in_turn = {};
    add_sample(node, 1, size - 1, size - 1);
    inside = std::max(inside, pairs.in_turn);
    largest = std::max(largest, node.size());
  }
  pairs.in_turn = inside;
  if (grouping.nodes.size() > 1) {
    // Members that far apart are in different nodes; what is sent is right if nodes are equal.
    const int apart = static_cast<int>(largest);
    const double others = count - static_cast<double>(count) / double(grouping.nodes.size());
    if (2 * apart <= count) {
      add_sample(members, apart, count - apart, others);
    } else {
      add_sample(members, 1, count - 1, others);
    }
  }
  return pairs;
}

}  // namespace

Traffic shift_traffic(const Cluster& cluster, const std::vector<int>& group, Bytes bytes) {
  Pairs pairs;
  add_step(cluster, group, {1, bytes}, pairs);
  return pairs.traffic;
}

Traffic halo_traffic(const Cluster& cluster, const std::vector<int>& group, Bytes onwards,
                     Bytes back) {
  Traffic traffic;
  for (std::size_t i = 0; i + 1 < group.size(); ++i) {
    const int one = group[i], next = group[i + 1];
    add_flow(traffic, one, next, onwards);
    add_flow(traffic, next, one, back);
    if (onwards > Bytes()) traffic.latency = std::max(traffic.latency, hop(cluster, one, next));
    if (back > Bytes()) traffic.latency = std::max(traffic.latency, hop(cluster, next, one));
  }
  return traffic;
}

Traffic pairwise_traffic(const Cluster& cluster, const Grouping& grouping, Bytes bytes) {
  Pairs pairs = all_pairs(cluster, grouping, bytes / grouping.members);
  pairs.traffic.latency = pairs.in_turn;
  return pairs.traffic;
}

Traffic dispatch_traffic(const Cluster& cluster, const Grouping& grouping, Bytes bytes,
                         double copies) {
  Traffic traffic = direct_traffic(cluster, grouping, CollectiveKind::AllToAll, bytes);
  // A node gets copies / n of a token; the chance that it gets any is 1 - (1 - 1/n)^copies.
  const double nodes = static_cast<double>(grouping.nodes.size());
  const double crossing = (1 - std::pow(1 - 1 / nodes, copies)) * nodes / copies;
  for (Flow& flow : traffic.flows) {
    const bool inside = node_of(cluster, flow.from) == node_of(cluster, flow.to);
    flow.bytes *= inside ? nodes : crossing;  // inside: all nodes' copies are handed on
  }
  return traffic;
}

Traffic direct_traffic(const Cluster& cluster, const Grouping& grouping, CollectiveKind kind,
                       Bytes bytes) {
  if (kind == CollectiveKind::Broadcast || kind == CollectiveKind::Reduce) {
    Traffic traffic;
    const int root = grouping.nodes[0][0];
    for (const int member : in_order(grouping)) {
      if (member == root) continue;
      add_flow(traffic, root, member, bytes);
      traffic.latency = std::max(traffic.latency, hop(cluster, root, member));
    }
    if (kind == CollectiveKind::Reduce) reverse(traffic);
    return traffic;
  }
  const double passes = kind == CollectiveKind::AllReduce ? 2 : 1;
  Traffic traffic = all_pairs(cluster, grouping, bytes * passes / grouping.members).traffic;
  traffic.latency *= passes;
  return traffic;
}

}  // namespace interlock
