// TraceStreams: the nodes of a rank laid out as in-order streams.
// SPDX-License-Identifier: Apache-2.0
//
// Ops that come one after the other share a stream, and what they send and join at once is in it,
// too. What has to wait for something that the next op does not wait for gets a stream of its own,
// or one whose end is there already by then: nothing waits for what its node does not come after.
// Receives are where their message is waited for. Nodes of a program of ours are laid as they were.
//
// Example: node 0 is a Compute, 1 a Send after it, 2 a Receive, 3 a Compute after 0 and 2. They
// make one stream: {0}, {1}, {3, waits for 2}.
#pragma once

#include <vector>

#include "sim/workloads/trace_graph.h"

namespace interlock {

struct StreamNode {
  int node = 0;            // in TraceGraph::nodes
  std::vector<int> waits;  // nodes that it comes after and that its stream does not know of
};

struct RankStreams {
  std::vector<std::vector<StreamNode>> streams;
  std::vector<int> order;  // stream of each Compute; empty: the rank chooses
};

RankStreams lay_streams(const TraceGraph& graph, int rank);

}  // namespace interlock
