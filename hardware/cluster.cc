// Routes: which links a message takes between two devices, and what they are called.
// SPDX-License-Identifier: Apache-2.0
//
// Numbering of links. Mesh: from * devices + to. Machines: first the ports, two a device (up,
// down), then the network cards, two a card (up, down), cards in order of their nodes.
#include "hardware/cluster.h"

#include <algorithm>

namespace interlock {
namespace {

enum Direction { Up = 0, Down = 1 };

LinkId port(int device, Direction direction) { return 2 * LinkId{device} + direction; }

/// The card of its node that `device` uses: neighbours share one.
int card_of(const Cluster& cluster, int device) {
  const int local = device % cluster.devices_per_node;
  return static_cast<int>(LinkId{local} * cluster.cards_per_node / cluster.devices_per_node);
}

LinkId card(const Cluster& cluster, int device, Direction direction) {
  const LinkId first = 2 * LinkId{cluster.devices};
  const LinkId node = device / cluster.devices_per_node;
  return first + 2 * (node * cluster.cards_per_node + card_of(cluster, device)) + direction;
}

const char* direction_name(LinkId id) { return id % 2 == Up ? " up" : " down"; }

}  // namespace

Route route(const Cluster& cluster, int from, int to) {
  CHECK(from >= 0 && from < cluster.devices && to >= 0 && to < cluster.devices,
        "devices " + std::to_string(from) + " and " + std::to_string(to) + " of a cluster of " +
            std::to_string(cluster.devices));
  if (from == to) return {};
  if (cluster.mesh) {
    const LinkId id = LinkId{from} * cluster.devices + to;
    return {{id}, cluster.port_latency, cluster.port_bandwidth};
  }
  if (from / cluster.devices_per_node == to / cluster.devices_per_node) {
    return {{port(from, Up), port(to, Down)}, cluster.port_latency, cluster.port_bandwidth};
  }
  return {{card(cluster, from, Up), card(cluster, to, Down)},
          cluster.card_latency,
          cluster.card_bandwidth};
}

Link link(const Cluster& cluster, LinkId id) {
  if (cluster.mesh) {
    return {std::to_string(id / cluster.devices) + "->" + std::to_string(id % cluster.devices),
            cluster.port_bandwidth};
  }
  const LinkId ports = 2 * LinkId{cluster.devices};
  if (id < ports) {
    return {"gpu" + std::to_string(id / 2) + direction_name(id), cluster.port_bandwidth};
  }
  const LinkId number = (id - ports) / 2;
  return {"node" + std::to_string(number / cluster.cards_per_node) + " nic" +
              std::to_string(number % cluster.cards_per_node) + direction_name(id),
          cluster.card_bandwidth};
}

}  // namespace interlock
