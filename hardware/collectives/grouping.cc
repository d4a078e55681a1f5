// Groups members by node, and puts flows together.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/collectives/grouping.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace interlock {

Grouping group_by_node(const Cluster& cluster, const std::vector<int>& group) {
  Grouping grouping;
  std::unordered_map<int, std::size_t> position;  // by node
  for (const int device : group) {
    const auto [found, added] =
        position.try_emplace(node_of(cluster, device), grouping.nodes.size());
    if (added) grouping.nodes.emplace_back();
    grouping.nodes[found->second].push_back(device);
  }
  grouping.members = static_cast<int>(group.size());
  std::size_t fewest = group.size();
  for (const std::vector<int>& node : grouping.nodes) fewest = std::min(fewest, node.size());
  grouping.channels = grouping.nodes.size() == 1 ? 1 : static_cast<int>(fewest);
  return grouping;
}

Grouping one_by_one(const Grouping& grouping) {
  Grouping singles;
  for (const int device : in_order(grouping)) singles.nodes.push_back({device});
  singles.members = grouping.members;
  return singles;
}

std::vector<int> in_order(const Grouping& grouping) {
  std::vector<int> all;
  all.reserve(static_cast<std::size_t>(grouping.members));
  for (const std::vector<int>& node : grouping.nodes) {
    all.insert(all.end(), node.begin(), node.end());
  }
  return all;
}

bool is_rectangular(const Grouping& grouping) {
  const std::size_t size = grouping.nodes[0].size();
  return grouping.nodes.size() > 1 && size > 1 &&
         std::all_of(grouping.nodes.begin(), grouping.nodes.end(),
                     [size](const std::vector<int>& node) { return node.size() == size; });
}

int entry(const Grouping& grouping, int size, int channel) {
  return static_cast<int>(std::int64_t{channel} * size / grouping.channels);
}

double share_from_before(const Grouping& grouping, int size, int local) {
  const auto channel =
      static_cast<int>((std::int64_t{local} * grouping.channels + size - 1) / size);
  const bool enters = channel < grouping.channels && entry(grouping, size, channel) == local;
  return enters ? 1 - 1.0 / grouping.channels : 1;
}

Seconds hop(const Cluster& cluster, int from, int to) { return route(cluster, from, to).latency; }

void add_flow(Traffic& traffic, int from, int to, Bytes bytes) {
  if (bytes > Bytes()) traffic.flows.push_back({from, to, bytes});
}

bool linked_in_pairs(const Cluster& cluster, const std::vector<int>& members) {
  const bool pairs = machine_of(cluster, members[0]).has_pair_links();
  if (!pairs || members.size() < 3) return false;
  const int node = node_of(cluster, members[0]);
  return std::all_of(members.begin(), members.end(),
                     [&](int member) { return node_of(cluster, member) == node; });
}

void add_step(const Cluster& cluster, const std::vector<int>& members, std::size_t from,
              std::size_t to, Bytes bytes, Traffic& traffic) {
  if (!linked_in_pairs(cluster, members))
    return add_flow(traffic, members[from], members[to], bytes);
  const Bytes part = bytes / static_cast<double>(members.size() - 1);
  for (std::size_t other = 0; other < members.size(); ++other) {
    if (other != from) add_flow(traffic, members[from], members[other], part);
  }
}

void append(Traffic& traffic, const Traffic& part) {
  traffic.flows.insert(traffic.flows.end(), part.flows.begin(), part.flows.end());
  traffic.latency += part.latency;
}

void reverse(Traffic& traffic) {
  for (Flow& flow : traffic.flows) std::swap(flow.from, flow.to);
}

std::vector<Flow> merged(std::vector<Flow> flows) {
  // Stable, so that sums are made in the same order everywhere.
  std::stable_sort(flows.begin(), flows.end(), [](const Flow& a, const Flow& b) {
    return std::tie(a.from, a.to) < std::tie(b.from, b.to);
  });
  std::size_t kept = 0;
  for (const Flow& flow : flows) {
    if (kept > 0 && flows[kept - 1].from == flow.from && flows[kept - 1].to == flow.to) {
      flows[kept - 1].bytes += flow.bytes;
    } else {
      flows[kept++] = flow;
    }
  }
  flows.resize(kept);
  return flows;
}

}  // namespace interlock
