// Routes inside a node whose devices are on PCIe.
// SPDX-License-Identifier: Apache-2.0
//
// Numbering: two links a switch (up, down), then from socket * sockets + to socket.
#include "hardware/topologies/pcie_tree.h"

namespace interlock {

LinkId links_of(const PcieTree& tree) {
  return 2 * LinkId{tree.switches} + LinkId{tree.sockets} * tree.sockets;
}

void climb(const PcieTree& tree, int at, LinkId first, Route& route) {
  if (tree.uplink.bandwidth == BytesPerSecond()) return;
  cross(route, first + 2 * LinkId{at}, tree.uplink.bandwidth);
}

void descend(const PcieTree& tree, int at, LinkId first, Route& route) {
  if (tree.uplink.bandwidth == BytesPerSecond()) return;
  cross(route, first + 2 * LinkId{at} + 1, tree.uplink.bandwidth);
}

void cross(const PcieTree& tree, int from_switch, int to_switch, LinkId first, Route& route) {
  if (from_switch == to_switch) return;
  const int from_socket = from_switch / (tree.switches / tree.sockets);
  const int to_socket = to_switch / (tree.switches / tree.sockets);
  climb(tree, from_switch, first, route);
  if (from_socket != to_socket) {
    const LinkId pair = LinkId{from_socket} * tree.sockets + to_socket;
    cross(route, first + 2 * LinkId{tree.switches} + pair, tree.socket_link.bandwidth);
    route.latency += tree.socket_link.latency;
  }
  descend(tree, to_switch, first, route);
  route.latency += tree.uplink.latency;
}

Link link(const PcieTree& tree, LinkId id) {
  if (id < 2 * LinkId{tree.switches}) {
    return {"pcie" + std::to_string(id / 2) + (id % 2 == 0 ? " up" : " down"),
            tree.uplink.bandwidth};
  }
  const LinkId pair = id - 2 * LinkId{tree.switches};
  return {"socket" + std::to_string(pair / tree.sockets) + "->socket" +
              std::to_string(pair % tree.sockets),
          tree.socket_link.bandwidth};
}

}  // namespace interlock
