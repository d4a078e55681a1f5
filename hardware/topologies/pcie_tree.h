// PCIe tree: devices below switches, switches below the host bridges of sockets, sockets joined.
// SPDX-License-Identifier: Apache-2.0
//
// Peer traffic between two switches crosses their uplinks; between two sockets it crosses both
// host bridges and the link between the sockets. All of these are shared.
//
// Example: four switches below two sockets have 12 links. Switch 0 reaches 1 by "pcie0 up" and
// "pcie1 down", and 3, of the other socket, by "pcie0 up", "socket0->socket1" and "pcie3 down",
// whose latencies add up.
#pragma once

#include "hardware/topologies/link.h"

namespace interlock {

/// The PCIe tree of one node. Devices and switches are numbered from socket to socket. Each pair of
/// sockets has a link of its own.
struct PcieTree {
  int switches = 1;  // a multiple of the sockets
  int sockets = 1;
  LinkSpeed uplink;       // of a switch; bandwidth 0: devices sit on the host bridge itself
  LinkSpeed socket_link;  // between two sockets
};

/// Returns the number of links of one node.
LinkId links_of(const PcieTree& tree);
/// Adds the links from one switch to another, and their latency.
void cross(const PcieTree& tree, int from_switch, int to_switch, LinkId first, Route& route);
/// Adds the link between a switch and its host bridge, if there is one.
void climb(const PcieTree& tree, int at, LinkId first, Route& route);
void descend(const PcieTree& tree, int at, LinkId first, Route& route);
/// REQUIRES: 0 <= id < links_of(tree).
Link link(const PcieTree& tree, LinkId id);

}  // namespace interlock
