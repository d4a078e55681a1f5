// The algorithms of collectives: what each sends over which edge, and how many latencies it takes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "hardware/collectives/grouping.h"

namespace interlock {

/// REQUIRES, of all: at least two members. A root is the first member.

/// Returns the traffic of one way round a ring for all-gather and reduce-scatter, of two for
/// all-reduce; broadcast and reduce use it as a chain.
Traffic ring_traffic(const Cluster& cluster, const Grouping& grouping, CollectiveKind kind,
                     Bytes bytes);
/// Returns the traffic as if all members were on one ring, in this order.
Traffic ring_pass(const Cluster& cluster, const std::vector<int>& members, Bytes over_each_edge);

/// REQUIRES: kind is AllReduce, Broadcast or Reduce.
Traffic tree_traffic(const Cluster& cluster, const Grouping& grouping, CollectiveKind kind,
                     Bytes bytes);

/// Returns the phases of a hierarchy, each of which waits for the one before.
/// REQUIRES: is_rectangular(grouping); kind is AllReduce, AllGather or ReduceScatter.
std::vector<Traffic> hierarchical_phases(const Cluster& cluster, const Grouping& grouping,
                                         CollectiveKind kind, Bytes bytes);

/// Returns every member to every other in one step; two for all-reduce.
Traffic direct_traffic(const Cluster& cluster, const Grouping& grouping, CollectiveKind kind,
                       Bytes bytes);
/// Returns the traffic of an all-to-all in n - 1 steps: in step k each sends to the k-th member
/// after it.
Traffic pairwise_traffic(const Cluster& cluster, const Grouping& grouping, Bytes bytes);
/// Returns the traffic from each member to the next, in this order.
Traffic shift_traffic(const Cluster& cluster, const std::vector<int>& group, Bytes bytes);
/// Returns the traffic of `onwards` from each member to the next and of `back` to the one before,
/// in this order, which is no ring.
Traffic halo_traffic(const Cluster& cluster, const std::vector<int>& group, Bytes onwards,
                     Bytes back);

}  // namespace interlock
