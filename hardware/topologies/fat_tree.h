// Fat tree: leaf switches above network cards, joined by spines, or in pods that cores join.
// SPDX-License-Identifier: Apache-2.0
//
// Ordinary: all cards of a node are on one leaf. Rail-optimised: card i of every node is on rail
// i, a fat tree of its own, so a message never changes rails between nodes: it first crosses its
// own node to the device beside the destination's card (as NCCL's PXN does).
//   two levels:   every leaf has one link to each spine
//   three levels: a leaf has one link to each aggregation switch of its pod; aggregation switches
//                 of the same number in all pods share their cores
//
// Example: two levels, two nodes a leaf, two spines. Nodes 0 and 1 meet on their leaf and cross no
// link; 0 goes to 2 by spine 0 (leaf0 up, leaf1 down), and to 3 by spine 1.
#pragma once

#include "hardware/topologies/link.h"

namespace interlock {

/// How messages spread over paths of equal length. Destination: by the number of the card they go
/// to, as InfiniBand's subnet managers do; shifts and rings over all nodes then never collide
/// ("D-mod-K" of Zahavi, recalled). Hash: as Ethernet switches do (ECMP), here by mix64 of
/// from * 2^32 + to. Either way the same two devices use the same path for ever.
enum class PathChoice { Destination, Hash };

/// A message between two nodes.
struct Passage {
  int from_node = 0;
  int to_node = 0;
  int card = 0;             // of its node, at the destination
  std::int64_t target = 0;  // number of the destination's card among all of its tree
  int from = 0;             // devices
  int to = 0;
};

/// Full-duplex links from one switch to those above it.
struct Uplinks {
  int count = 1;
  BytesPerSecond bandwidth;  // of one
};

struct FatTree {
  int rails = 0;  // 0: ordinary; else the cards of a node
  int nodes_per_leaf = 1;
  int leaves_per_pod = 0;  // 0: two levels
  Uplinks leaf;
  Uplinks pod;          // of an aggregation switch; three levels only
  Seconds hop_latency;  // of a link between switches
  PathChoice paths = PathChoice::Destination;
};

/// Uplinks of a switch that has `below` links of `bandwidth` down: as fast as those, and as many as
/// `oversubscription` (bandwidth down over bandwidth up) asks for. Their number is rounded, at
/// least 1; then their bandwidth makes the ratio exact.
Uplinks uplinks_for(int below, BytesPerSecond bandwidth, double oversubscription);

/// Adds the links between two cards, and their latency.
void cross(const FatTree& tree, const Passage& passage, LinkId first, Route& route);
/// REQUIRES: `id` came from such a route whose `first` was 0.
Link link(const FatTree& tree, LinkId id);

}  // namespace interlock
