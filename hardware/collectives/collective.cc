// Chooses the algorithm of a collective, and makes its traffic a plan.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/collectives/collective.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "hardware/collectives/algorithms.h"
#include "hardware/collectives/link_load.h"
#include "hardware/collectives/token_routing.h"

namespace interlock {
namespace {

struct Task {
  const Cluster& cluster;
  const std::vector<int>& group;
  const Grouping& grouping;
  CollectiveKind kind;
  Bytes bytes;
};

bool reduces_or_spreads(CollectiveKind kind) {
  return kind == CollectiveKind::Broadcast || kind == CollectiveKind::Reduce;
}

/// Returns true if `algorithm` serves this kind of collective and this group.
bool applies(CollectiveAlgorithm algorithm, const Task& task) {
  switch (algorithm) {
    case CollectiveAlgorithm::Auto:
      return false;
    case CollectiveAlgorithm::Ring:
      return task.kind != CollectiveKind::Shift;
    case CollectiveAlgorithm::Tree:
      return task.kind == CollectiveKind::AllReduce || reduces_or_spreads(task.kind);
    case CollectiveAlgorithm::Hierarchical:
      return is_rectangular(task.grouping) && task.kind != CollectiveKind::AllToAll &&
             task.kind != CollectiveKind::Shift && !reduces_or_spreads(task.kind);
    case CollectiveAlgorithm::Direct:
      return true;
  }
  return false;
}

/// Phases wait for each other, but fluid does not: the time that this costs becomes latency.
CollectivePlan join_phases(const Cluster& cluster, const std::vector<Traffic>& phases) {
  Traffic all;
  Seconds in_turn;
  for (const Traffic& phase : phases) {
    in_turn += occupancy(cluster, phase.flows);
    append(all, phase);
  }
  CollectivePlan plan{CollectiveAlgorithm::Hierarchical, merged(std::move(all.flows)), all.latency};
  plan.latency += std::max(Seconds(), in_turn - occupancy(cluster, plan.flows));
  return plan;
}

Traffic traffic_of(CollectiveAlgorithm algorithm, const Task& task) {
  const auto& [cluster, group, grouping, kind, bytes] = task;
  if (kind == CollectiveKind::Shift) return shift_traffic(cluster, group, bytes);
  if (algorithm == CollectiveAlgorithm::Tree) return tree_traffic(cluster, grouping, kind, bytes);
  if (algorithm == CollectiveAlgorithm::Direct) {
    return direct_traffic(cluster, grouping, kind, bytes);
  }
  if (kind == CollectiveKind::AllToAll) return pairwise_traffic(cluster, grouping, bytes);
  return ring_traffic(cluster, grouping, kind, bytes);
}

CollectivePlan plan_with(CollectiveAlgorithm algorithm, const Task& task) {
  if (algorithm == CollectiveAlgorithm::Hierarchical) {
    return join_phases(task.cluster,
                       hierarchical_phases(task.cluster, task.grouping, task.kind, task.bytes));
  }
  Traffic traffic = traffic_of(algorithm, task);
  return {algorithm, merged(std::move(traffic.flows)), traffic.latency};
}

/// Returns the cheapest; of equals, the first in the order of the enumeration.
CollectivePlan cheapest(const Task& task) {
  if (task.kind == CollectiveKind::AllToAll || task.kind == CollectiveKind::Shift) {
    return plan_with(CollectiveAlgorithm::Direct, task);
  }
  CollectivePlan best;
  std::optional<Seconds> least;
  for (const CollectiveAlgorithm algorithm :
       {CollectiveAlgorithm::Ring, CollectiveAlgorithm::Tree, CollectiveAlgorithm::Hierarchical}) {
    if (!applies(algorithm, task)) continue;
    CollectivePlan plan = plan_with(algorithm, task);
    const Seconds time = time_alone(task.cluster, plan);
    if (least && time >= *least) continue;
    least = time;
    best = std::move(plan);
  }
  return best;
}

void check_members(std::vector<int> group) {
  std::sort(group.begin(), group.end());
  CHECK(std::adjacent_find(group.begin(), group.end()) == group.end(),
        "each device once among the members of a collective");
}

}  // namespace

CollectivePlan plan_collective(const Cluster& cluster, const std::vector<int>& group,
                               CollectiveKind kind, Bytes bytes, CollectiveChoice choice) {
  CHECK(kind != CollectiveKind::HostCopy && kind != CollectiveKind::Halo,
        "one size, one direction");
  if (group.size() < 2 || bytes <= Bytes()) return {};
  check_members(group);
  const Grouping grouping = group_by_node(cluster, group);
  const Task task{cluster, group, grouping, kind, bytes};
  return applies(choice.algorithm, task) ? plan_with(choice.algorithm, task) : cheapest(task);
}

CollectivePlan plan_host_copy(const Cluster& cluster, int device, HostDirection direction,
                              Bytes bytes) {
  if (bytes <= Bytes()) return {};
  const bool out = direction == HostDirection::ToHost;
  const Flow flow = {out ? device : kHost, out ? kHost : device, bytes};
  return {CollectiveAlgorithm::Direct, {flow}, route(cluster, flow.from, flow.to).latency};
}

namespace {

/// Tokens on their way over several links, one after the other, in many parts.
CollectivePlan plan_tokens(const Cluster& cluster, const std::vector<int>& group,
                           const Exchange& exchange) {
  if (group.size() < 2 || is_empty(exchange)) return {};
  check_members(group);
  Traffic traffic =
      token_traffic(cluster, group_by_node(cluster, group), exchange.routing, exchange.bytes);
  return {CollectiveAlgorithm::Hierarchical, merged(std::move(traffic.flows)), traffic.latency};
}

/// Returns the time that was measured of a collective, if it was, and if the cluster asks for it.
std::optional<Seconds> measured_time(const Cluster& cluster, const std::vector<int>& group,
                                     const Exchange& exchange) {
  if (!cluster.calibrated_collectives || !is_calibrated(cluster)) return std::nullopt;
  const int node = node_of(cluster, group.front());
  for (const int device : group) {
    if (node_of(cluster, device) != node) return std::nullopt;
  }
  return calibrated_time(*front_device(cluster).calibrated, exchange.kind,
                         static_cast<int>(group.size()), exchange.bytes);
}

/// Has a plan take `time` when alone: what its flows leave of it is latency. Flows that take longer
/// become smaller.
void take(Seconds time, const Cluster& cluster, CollectivePlan& plan) {
  const Seconds busy = occupancy(cluster, plan.flows);
  plan.latency = std::max(Seconds(), time - busy);
  if (busy <= time) return;
  for (Flow& flow : plan.flows) flow.bytes *= time / busy;
}

}  // namespace

CollectivePlan plan_exchange(const Cluster& cluster, const std::vector<int>& group,
                             const Exchange& exchange) {
  if (is_host(exchange.axis)) {
    const bool out = exchange.axis == MeshAxis::ToHost;
    return plan_host_copy(cluster, group.front(),
                          out ? HostDirection::ToHost : HostDirection::FromHost, exchange.bytes);
  }
  if (exchange.routing.experts > 0) return plan_tokens(cluster, group, exchange);
  if (exchange.kind != CollectiveKind::Halo) {
    CollectivePlan plan = plan_collective(cluster, group, exchange.kind, exchange.bytes, {});
    if (plan.flows.empty()) return plan;
    if (const auto time = measured_time(cluster, group, exchange)) take(*time, cluster, plan);
    return plan;
  }
  if (group.size() < 2 || is_empty(exchange)) return {};
  check_members(group);
  Traffic traffic = halo_traffic(cluster, group, exchange.bytes, exchange.back);
  return {CollectiveAlgorithm::Direct, merged(std::move(traffic.flows)), traffic.latency};
}

double size_ratio(const std::vector<Flow>& flows, const std::vector<Flow>& other) {
  if (flows.size() != other.size() || flows.empty()) return 0;
  const double ratio = flows[0].bytes / other[0].bytes;
  const auto alike = [&](const Flow& a, const Flow& b) {
    return a.from == b.from && a.to == b.to && a.bytes == ratio * b.bytes;
  };
  return std::equal(flows.begin(), flows.end(), other.begin(), alike) ? ratio : 0;
}

Bytes memory_bytes(const Exchange& exchange, std::size_t n) {
  const Bytes moved = exchange.bytes * (static_cast<double>(n - 1) / static_cast<double>(n));
  switch (exchange.kind) {
    case CollectiveKind::AllReduce:  // a reduce-scatter and an all-gather
      return 5 * moved;
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::Reduce:
      return 3 * moved;
    case CollectiveKind::AllGather:
    case CollectiveKind::Broadcast:
    case CollectiveKind::AllToAll:
      return 2 * moved;
    case CollectiveKind::Shift:
      return 2 * exchange.bytes;
    case CollectiveKind::Halo:
      return 2 * (exchange.bytes + exchange.back);
    case CollectiveKind::HostCopy:
      return exchange.bytes;
  }
  return Bytes(0);
}

Seconds occupancy(const Cluster& cluster, const std::vector<Flow>& flows) {
  Seconds busiest;
  for (const LinkLoad& load : link_loads(cluster, flows)) busiest = std::max(busiest, load.busy);
  return busiest;
}

Seconds time_alone(const Cluster& cluster, const CollectivePlan& plan) {
  return plan.latency + occupancy(cluster, plan.flows);
}

}  // namespace interlock
