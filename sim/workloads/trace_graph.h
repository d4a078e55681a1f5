// TraceGraph: execution traces of all ranks as one graph, checked, in an order in which it can run.
// SPDX-License-Identifier: Apache-2.0
//
// Example: rank 0 has a Compute and then a Send, rank 1 a Receive. These are nodes 0, 1 and 2, and
// `first` is {0, 2, 3}; nodes 1 and 2 are partners.
#pragma once

#include <string>
#include <vector>

#include "sim/workloads/execution_trace.h"

namespace interlock {

struct GraphNode {
  const ExecutionNode* node = nullptr;
  NodeKind kind = NodeKind::Other;  // Other, too, if only the rank itself takes part
  int rank = 0;
  std::vector<int> after;  // places in TraceGraph::nodes, all of them before this one
  int partner = -1;        // the other end of a message
  int meeting = -1;        // of a Collective: in TraceGraph::meetings
  int number = 0;          // among the Computes of its rank
};

/// A collective, or a barrier, that several ranks join.
struct Meeting {
  int group = 0;                            // in TraceGraph::groups
  std::optional<CollectiveKind> kind = {};  // nothing: a barrier
  Bytes bytes = {};                         // of an Exchange
  int micro_batch = 0;
};

struct TraceGraph {
  std::vector<GraphNode> nodes;          // rank by rank
  std::vector<int> first;                // by rank, and the number of all nodes behind
  std::vector<std::vector<int>> groups;  // their ranks
  std::vector<Meeting> meetings;
  std::optional<TraceSteps> steps;  // nothing: one step, whose ops have no names
};

/// Returns the graph of `traces`, which must outlive it. Where several nodes of a rank could be
/// next, the one with the lowest id is. Throws: Error that names file and node, see lower_traces.
TraceGraph graph_of(const std::vector<ExecutionTrace>& traces);

/// Throws: Error if `cluster` has too few devices, or no host for nodes that copy to one.
void check_devices(const std::vector<ExecutionTrace>& traces, const Cluster& cluster);

}  // namespace interlock
