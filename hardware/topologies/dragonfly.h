// Dragonfly: groups of routers, all joined within a group, and each pair of groups by cables.
// SPDX-License-Identifier: Apache-2.0
//
// Source: Kim, Dally, Scott, Abts, Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA
// 2008. Routing is minimal: at most one hop in the group, one cable, and one hop in the other.
// The cables of a group are dealt to its routers in turn, in the order of the other groups. Of
// several cables to a group, a message takes the one whose number is the sum of both nodes' numbers
// modulo the cables: the same there and back.
//
// Example: three groups of two routers with two nodes each. Node 0 (router 0) reaches node 4
// (router 2, the next group) by the cable of its own router, and node 11 (router 5) by router 1,
// which has the cable to router 4.
#pragma once

#include "hardware/topologies/link.h"

namespace interlock {

struct Dragonfly {
  int groups = 1;
  int routers_per_group = 1;
  int nodes_per_router = 1;
  int cables = 1;    // between each pair of groups
  LinkSpeed local;   // between two routers of a group
  LinkSpeed global;  // a cable
};

/// Adds the links between the routers of two nodes, and their latency.
void cross(const Dragonfly& dragonfly, int from_node, int to_node, LinkId first, Route& route);
/// REQUIRES: `id` came from such a route whose `first` was 0.
Link link(const Dragonfly& dragonfly, LinkId id);

}  // namespace interlock
