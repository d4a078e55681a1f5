// CollectivePlan: a collective among some devices of a cluster, as what each edge has to carry.
// SPDX-License-Identifier: Apache-2.0
//
// A collective of thousands of steps is not simulated step by step: the bytes that an algorithm
// sends from one device to another over all its steps become one flow, and the flows of a plan are
// under way all at once, as fluid. Before that, time passes in which nothing is occupied: the
// latencies of the steps that follow one another.
//
//   algorithm     all-reduce of S among n members, in m nodes of g
//   Ring          2 (n-1)/n S over each edge of the ring, 2 (n-1) latencies. Where nodes have g
//                 members each there are g rings (channels), whose edges between nodes start at
//                 different members: each member's own card carries 1/g of the bytes.
//   Tree          two trees over the nodes, each for half the bytes, in which no node is inside
//                 both (Sanders, Speck and Traff, Parallel Computing 35(12), 2009, recalled; as
//                 NCCL's, chains inside the nodes): 2 (g-1) + 2 log2 m latencies
//   Hierarchical  reduce-scatter inside the nodes, all-reduce of the parts between equal members
//                 of the nodes, all-gather inside; each waits for the one before
//   Direct        every member to every other, in one step (an all-reduce: two)
//
// What moves through a ring, a chain or a tree is cut so small that filling it takes latency only.
// All-gather and reduce-scatter move half of what all-reduce does; broadcast and reduce move S over
// each edge of a chain or of the trees. Shift goes to the next member in the order given, Halo to
// both neighbours at once; all others keep together what is in one node.
//
// Example: an all-reduce of 800 MB among devices 0 to 3 of one node, as a ring. Its flows are
// 0 -> 1, 1 -> 2, 2 -> 3 and 3 -> 0 of 2 x 3/4 x 800 MB = 1200 MB each, all at once, after six
// latencies: through ports of 200 GB/s it takes 6 ms and these.
#pragma once

#include <vector>

#include "base/exchange.h"
#include "hardware/networks/cluster.h"

namespace interlock {

enum class CollectiveAlgorithm { Auto, Ring, Tree, Hierarchical, Direct };

/// The bytes that one device sends another over the whole of a collective.
struct Flow {
  int from = 0;  // devices, or kHost
  int to = 0;
  Bytes bytes;
};

struct CollectivePlan {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::Auto;  // the one taken; Auto: nothing to do
  std::vector<Flow> flows;  // all at once, as fluid; sorted, one for each pair of devices
  Seconds latency;          // nothing is occupied meanwhile: steps in turn, waits between phases
};

struct CollectiveChoice {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::Auto;
};

/// Returns the plan of a collective among the devices of `group`, whose first is the root of a
/// broadcast or reduce; `bytes` as in base/exchange.h. Auto takes what is done soonest when alone
/// on the cluster: of rings, trees and hierarchies, as they apply; all-to-all is always direct. An
/// algorithm that the kind or the group cannot have is answered as Auto. A group of one, or no
/// bytes: nothing. An all-to-all of more than 512 members sends each member's bytes to a sample of
/// the others: what leaves and enters a device or a node is right, which of them talk is not.
/// REQUIRES: the devices are in the cluster, and no two of them equal; no copies or halos.
CollectivePlan plan_collective(const Cluster& cluster, const std::vector<int>& group,
                               CollectiveKind kind, Bytes bytes, CollectiveChoice choice);

/// Returns the plan of copying `bytes` between a device and the memory of its host.
CollectivePlan plan_host_copy(const Cluster& cluster, int device, HostDirection direction,
                              Bytes bytes);

/// Returns the plan of what the devices of `group` exchange; of a copy, by its first. Where the
/// cluster's collectives are calibrated, a plan takes the time that was measured: what its flows
/// leave of that is latency, and if they take longer, all have fewer bytes.
CollectivePlan plan_exchange(const Cluster& cluster, const std::vector<int>& group,
                             const Exchange& exchange);

/// Returns how many times the bytes of `other` the flows have; 0 where they differ in anything
/// else.
double size_ratio(const std::vector<Flow>& flows, const std::vector<Flow>& other);
/// Returns the least bytes that a member of `n` reads and writes in its memory: each byte that
/// leaves or enters once, and a second operand for each byte that is added up.
Bytes memory_bytes(const Exchange& exchange, std::size_t n);

/// Returns bytes / bandwidth of the link that is busiest when all flows are under way, alone on the
/// cluster.
Seconds occupancy(const Cluster& cluster, const std::vector<Flow>& flows);
/// Returns latency and occupancy, in sum.
Seconds time_alone(const Cluster& cluster, const CollectivePlan& plan);

}  // namespace interlock
