// PCIe trees and the way to a host's memory, drawn for boxes of eight devices.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/hardware/link_graph.h"

namespace interlock::pcie_tree_test {
namespace {

using Names = std::vector<std::string>;

constexpr double kPort = 25e9;
constexpr double kUplink = 24e9;
constexpr double kSocket = 20e9;
constexpr double kCard = 12.5e9;

Cluster box(int nodes, int switches, int sockets, int cards) {
  return {.name = std::to_string(switches) + " switches, " + std::to_string(sockets) +
                  " sockets, " + std::to_string(cards) + " cards",
          .machines = {{.devices_per_node = 8,
                        .port_latency = Seconds(5e-6),
                        .port_bandwidth = BytesPerSecond(kPort),
                        .cards_per_node = cards,
                        .card_latency = Seconds(10e-6),
                        .card_bandwidth = BytesPerSecond(kCard),
                        .pcie = PcieTree{.switches = switches,
                                         .sockets = sockets,
                                         .uplink = {Seconds(1e-6), BytesPerSecond(kUplink)},
                                         .socket_link = {Seconds(2e-6), BytesPerSecond(kSocket)}},
                        .host = {Seconds(4e-6), BytesPerSecond(22e9)}}},
          .devices = 8 * nodes};
}

/// Devices below switches, switches below sockets, cards beside the first device that uses them.
LinkGraph drawn(const Cluster& cluster) {
  LinkGraph graph;
  const PcieTree& tree = *cluster.machines.front().pcie;
  for (int node = 0; node * 8 < cluster.devices; ++node) {
    const std::string name = numbered("node", node) + " ";
    std::map<int, int> card_at;  // its first device
    for (int local = 7; local >= 0 && cluster.machines.front().cards_per_node > 0; --local)
      card_at[local * cluster.machines.front().cards_per_node / 8] = local;
    for (int local = 0; local < 8; ++local) {
      const std::string gpu = numbered("gpu", 8 * node + local);
      graph.add_duplex(gpu, gpu, name + numbered("pcie", local * tree.switches / 8), kPort);
    }
    for (int at = 0; at < tree.switches; ++at) {
      const std::string pcie = name + numbered("pcie", at);
      graph.add_duplex(pcie, pcie, name + numbered("socket", at * tree.sockets / tree.switches),
                       kUplink);
    }
    for (const auto& [card, local] : card_at) {
      graph.add_duplex(name + numbered("nic", card),
                       name + numbered("pcie", local * tree.switches / 8), "net", kCard);
    }
    for (int a = 0; a < tree.sockets; ++a) {
      for (int b = 0; b < tree.sockets; ++b) {
        if (a == b) continue;
        graph.add(name + numbered("socket", a) + "->" + numbered("socket", b),
                  name + numbered("socket", a), name + numbered("socket", b), kSocket);
      }
    }
  }
  return graph;
}

}  // namespace

TEST_CASE("routes of a PCIe box hang together and are the shortest, cards and other nodes too") {
  for (const auto& [switches, sockets, cards] :
       {std::tuple{4, 2, 1}, std::tuple{2, 2, 2}, std::tuple{8, 4, 8}, std::tuple{1, 1, 1},
        std::tuple{4, 1, 2}}) {
    const Cluster cluster = box(2, switches, sockets, cards);
    CAPTURE(cluster.name);
    const LinkGraph graph = drawn(cluster);
    const auto used = check_routes(graph, cluster);
    MESSAGE("inside a node the cards are no way; without them:");
    check_shortest(graph, cluster, Pairs::BetweenNodes);
    const Cluster single = box(1, switches, sockets, 0);
    check_shortest(drawn(single), single);
    const int uplinks = switches == 1 ? 0 : switches;
    MESSAGE("a lone switch's uplink leads to the host only");
    CHECK_EQ(used.size(), 2 * (2 * 8 + 2 * uplinks + sockets * (sockets - 1) + 2 * cards));
  }
}

TEST_CASE("peer traffic between sockets crosses both host bridges and the link between them") {
  const Cluster cluster = box(1, 4, 2, 1);
  CHECK_EQ(link_names(cluster, route(cluster, 0, 1)), Names{"gpu0 up", "gpu1 down"});
  CHECK_EQ(link_names(cluster, route(cluster, 0, 2)),
           Names{"gpu0 up", "node0 pcie0 up", "node0 pcie1 down", "gpu2 down"});
  CHECK_EQ(link_names(cluster, route(cluster, 1, 7)),
           Names{"gpu1 up", "node0 pcie0 up", "node0 socket0->socket1", "node0 pcie3 down",
                 "gpu7 down"});
  MESSAGE("5 us below one switch, 1 us more between switches, 2 us more between sockets");
  CHECK_EQ(route(cluster, 0, 1).latency.value(), doctest::Approx(5e-6));
  CHECK_EQ(route(cluster, 0, 2).latency.value(), doctest::Approx(6e-6));
  CHECK_EQ(route(cluster, 1, 7).latency.value(), doctest::Approx(8e-6));
  CHECK_EQ(route(cluster, 1, 7).bandwidth, BytesPerSecond(kSocket));
  MESSAGE("four messages from one socket to the other share that link");
  for (int from = 1; from < 4; ++from) {
    CHECK_EQ(route(cluster, from, 4 + from).links[2], route(cluster, 0, 4).links[2]);
  }
}

TEST_CASE("without switches devices sit on host bridges, and only the socket link joins these") {
  Cluster cluster = box(1, 2, 2, 1);
  cluster.machines.front().pcie->uplink = {};
  CHECK_EQ(link_names(cluster, route(cluster, 0, 3)), Names{"gpu0 up", "gpu3 down"});
  CHECK_EQ(link_names(cluster, route(cluster, 0, 4)),
           Names{"gpu0 up", "node0 socket0->socket1", "gpu4 down"});
}

TEST_CASE(
    "a card sits beside the first device that uses it, so others cross the tree to reach it") {
  const Cluster cluster = box(2, 4, 2, 1);
  CHECK_EQ(link_names(cluster, route(cluster, 0, 8)),
           Names{"gpu0 up", "node0 nic0 up", "node1 nic0 down", "gpu8 down"});
  CHECK_EQ(link_names(cluster, route(cluster, 6, 8)),
           Names{"gpu6 up", "node0 pcie3 up", "node0 socket1->socket0", "node0 pcie0 down",
                 "node0 nic0 up", "node1 nic0 down", "gpu8 down"});
}

TEST_CASE("the way to the host shares ports and uplinks with peers, each direction its own") {
  const Cluster cluster = box(2, 4, 2, 1);
  const Route up = host_route(cluster, 9, HostDirection::ToHost);
  const Route down = host_route(cluster, 9, HostDirection::FromHost);
  CHECK_EQ(link_names(cluster, up), Names{"gpu9 up", "node1 pcie0 up", "gpu9 to host"});
  CHECK_EQ(link_names(cluster, down), Names{"gpu9 from host", "node1 pcie0 down", "gpu9 down"});
  CHECK_EQ(up.links[0], route(cluster, 9, 12).links[0]);
  CHECK_EQ(up.links[1], route(cluster, 9, 12).links[1]);
  CHECK_EQ(up.latency, Seconds(4e-6));
  CHECK_EQ(up.bandwidth, BytesPerSecond(22e9));
}

TEST_CASE("behind NVSwitch, in a mesh and on a torus the way to the host is a link of its own") {
  Cluster machine = box(2, 4, 2, 8);
  machine.machines.front().pcie.reset();
  Cluster mesh{.name = "mesh",
               .machines = {{.port_bandwidth = BytesPerSecond(1e9)}},
               .devices = 5,
               .mesh = true};
  mesh.machines.front().host = machine.machines.front().host;
  Cluster torus = machine;
  torus.network = Torus{.dimensions = {4, 4},
                        .of_devices = true,
                        .link = {Seconds(), mesh.machines.front().host.bandwidth}};
  for (const Cluster& cluster : {machine, mesh, torus}) {
    CAPTURE(cluster.name);
    std::set<LinkId> seen;
    for (int device = 0; device < cluster.devices; ++device) {
      for (const auto direction : {HostDirection::ToHost, HostDirection::FromHost}) {
        const Route way = host_route(cluster, device, direction);
        REQUIRE_EQ(way.links.size(), 1);
        CHECK(seen.insert(way.links[0]).second);
        const bool to = direction == HostDirection::ToHost;
        CHECK_EQ(link(cluster, way.links[0]).name,
                 numbered("gpu", device) + (to ? " to host" : " from host"));
        CHECK_EQ(link(cluster, way.links[0]).bandwidth, BytesPerSecond(22e9));
      }
      for (int other = 0; other < cluster.devices; ++other) {
        for (const LinkId id : route(cluster, device, other).links) CHECK_EQ(seen.count(id), 0);
      }
    }
  }
  machine.machines.front().host = {};
  CHECK_FALSE(has_host(machine));
}

TEST_CASE("nodes and cards of devices count from the machine's sizes; a mesh is one node") {
  const Cluster cluster = box(3, 4, 2, 2);
  CHECK_EQ(nodes(cluster), 3);
  CHECK_EQ(node_of(cluster, 15), 1);
  CHECK_EQ(card_of(cluster, 11), 0);
  CHECK_EQ(card_of(cluster, 12), 1);
  Cluster part = cluster;
  part.devices = 17;
  CHECK_EQ(nodes(part), 3);
  CHECK_EQ(nodes(Cluster{.devices = 9, .mesh = true}), 1);
  CHECK_EQ(node_of(Cluster{.devices = 9, .mesh = true}, 8), 0);
}

}  // namespace interlock::pcie_tree_test
