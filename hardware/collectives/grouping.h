// Grouping: the members of a collective by node, and where its channels enter and leave each node.
// SPDX-License-Identifier: Apache-2.0
//
// Example: {0, 1, 2, 8, 9} on nodes of 8 devices are the nodes {0, 1, 2} and {8, 9}, joined by two
// channels.
#pragma once

#include <vector>

#include "hardware/collectives/collective.h"

namespace interlock {

/// Members by node, nodes in the order in which the group names them. Between nodes a collective
/// runs over as many channels as the node with the fewest members has, 1/channels of the bytes
/// each.
struct Grouping {
  std::vector<std::vector<int>> nodes;
  int members = 0;
  int channels = 1;
};

Grouping group_by_node(const Cluster& cluster, const std::vector<int>& group);
/// Returns the grouping of the same devices in which each is a node of its own.
Grouping one_by_one(const Grouping& grouping);
/// Returns all members, node after node.
std::vector<int> in_order(const Grouping& grouping);
/// Returns true if there are several nodes with the same number of members, more than one.
bool is_rectangular(const Grouping& grouping);

/// Returns the member of a node of `size` that has the bytes of `channel` first; members differ by
/// channel.
int entry(const Grouping& grouping, int size, int channel);
/// Returns the share of the bytes that comes to member `local` of a node of `size` from the member
/// before it, when all bytes of each channel go round the node once from its entry.
double share_from_before(const Grouping& grouping, int size, int local);

/// Returns the one-way latency between two devices.
Seconds hop(const Cluster& cluster, int from, int to);

/// The traffic of an algorithm, edge by edge, before equal edges are put together.
struct Traffic {
  std::vector<Flow> flows;
  Seconds latency;
};

void add_flow(Traffic& traffic, int from, int to, Bytes bytes);
/// Returns true if each pair of `members`, three or more of one node, has a link of its own.
bool linked_in_pairs(const Cluster& cluster, const std::vector<int>& members);
/// Adds what members[from] sends members[to] in a ring or a chain. Where pairs have links of their
/// own rings and chains of all orders share the bytes, so that every other member gets as much.
void add_step(const Cluster& cluster, const std::vector<int>& members, std::size_t from,
              std::size_t to, Bytes bytes, Traffic& traffic);
/// Adds what `part` sends, and its latency behind that of `traffic`.
void append(Traffic& traffic, const Traffic& part);
/// Turns every flow round: what was spread from one is then collected there, and the reverse.
void reverse(Traffic& traffic);
/// Returns one flow for each pair of devices, sorted.
std::vector<Flow> merged(std::vector<Flow> flows);

}  // namespace interlock
