// Routes and shared links, on clusters small enough to draw.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "hardware/networks/cluster.h"

namespace interlock::route_test {
namespace {

Cluster mesh(int devices) {
  return {.name = "mesh",
          .machines = {{.devices_per_node = devices,
                        .port_latency = Seconds(1e-6),
                        .port_bandwidth = BytesPerSecond(100e9)}},
          .devices = devices,
          .mesh = true};
}

/// Nodes of four devices; two of them share a card.
Cluster machine(int devices) {
  return {.name = "machine",
          .machines = {{.devices_per_node = 4,
                        .port_latency = Seconds(3e-6),
                        .port_bandwidth = BytesPerSecond(300e9),
                        .cards_per_node = 2,
                        .card_latency = Seconds(10e-6),
                        .card_bandwidth = BytesPerSecond(25e9)}},
          .devices = devices};
}

std::vector<std::string> names(const Cluster& cluster, int from, int to) {
  std::vector<std::string> result;
  for (const LinkId id : route(cluster, from, to).links) result.push_back(link(cluster, id).name);
  return result;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("every ordered pair of a mesh has a link of its own") {
  const Cluster cluster = mesh(5);
  std::set<LinkId> seen;
  for (int from = 0; from < 5; ++from) {
    for (int to = 0; to < 5; ++to) {
      if (from == to) continue;
      const Route way = route(cluster, from, to);
      REQUIRE_EQ(way.links.size(), 1);
      CHECK(seen.insert(way.links[0]).second);
      CHECK_EQ(link(cluster, way.links[0]).name, std::to_string(from) + "->" + std::to_string(to));
      CHECK_EQ(way.latency, Seconds(1e-6));
      CHECK_EQ(way.bandwidth, BytesPerSecond(100e9));
    }
  }
  CHECK_EQ(seen.size(), 20);
}

TEST_CASE("a message inside a node takes two ports, one between nodes two cards") {
  const Cluster cluster = machine(8);
  CHECK_EQ(names(cluster, 0, 3), Names{"gpu0 up", "gpu3 down"});
  CHECK_EQ(names(cluster, 3, 0), Names{"gpu3 up", "gpu0 down"});
  CHECK_EQ(names(cluster, 5, 6), Names{"gpu5 up", "gpu6 down"});
  MESSAGE("devices 0 and 1 of a node use its nic0, 2 and 3 its nic1; device 6 is 2 of node 1");
  CHECK_EQ(names(cluster, 0, 6), Names{"node0 nic0 up", "node1 nic1 down"});
  CHECK_EQ(names(cluster, 7, 1), Names{"node1 nic1 up", "node0 nic0 down"});
  CHECK_EQ(route(cluster, 0, 3).latency, Seconds(3e-6));
  CHECK_EQ(route(cluster, 0, 3).bandwidth, BytesPerSecond(300e9));
  CHECK_EQ(route(cluster, 3, 4).latency, Seconds(10e-6));
  CHECK_EQ(route(cluster, 3, 4).bandwidth, BytesPerSecond(25e9));
}

TEST_CASE("where cards stand behind ports, a message between nodes crosses both devices' ports") {
  Cluster cluster = machine(8);
  cluster.machines.front().cards_behind_ports = true;
  CHECK_EQ(names(cluster, 0, 6), Names{"gpu0 up", "node0 nic0 up", "node1 nic1 down", "gpu6 down"});
  CHECK_EQ(names(cluster, 0, 3), Names{"gpu0 up", "gpu3 down"});
  CHECK_EQ(route(cluster, 0, 6).latency, Seconds(10e-6));
  cluster.machines.front().port_bandwidth = BytesPerSecond(5e9);
  CHECK_EQ(route(cluster, 0, 6).bandwidth, BytesPerSecond(5e9));
}

TEST_CASE("a link's bandwidth is that of its kind") {
  const Cluster cluster = machine(8);
  CHECK_EQ(link(cluster, route(cluster, 0, 1).links[0]).bandwidth, BytesPerSecond(300e9));
  CHECK_EQ(link(cluster, route(cluster, 0, 4).links[1]).bandwidth, BytesPerSecond(25e9));
}

TEST_CASE("messages share a link exactly where they leave or enter by the same port or card") {
  const Cluster cluster = machine(12);
  for (int a = 0; a < 12; ++a) {
    for (int b = 0; b < 12; ++b) {
      if (a == b) continue;
      const bool inside = a / 4 == b / 4;
      const Route way = route(cluster, a, b);
      for (int c = 0; c < 12; ++c) {
        for (int d = 0; d < 12; ++d) {
          if (c == d) continue;
          const bool same_kind = inside == (c / 4 == d / 4);
          // Cards join neighbours (0,1), (2,3), ... of a node; ports belong to one device.
          const int grain = inside ? 1 : 2;
          const bool shares = same_kind && (a / grain == c / grain || b / grain == d / grain);
          const Route other = route(cluster, c, d);
          const bool found = way.links[0] == other.links[0] || way.links[1] == other.links[1] ||
                             way.links[0] == other.links[1] || way.links[1] == other.links[0];
          CHECK_EQ(found, shares);
        }
      }
    }
  }
}

TEST_CASE("links have one name each and names one link each") {
  const Cluster cluster = machine(12);
  std::map<LinkId, std::string> names;
  std::set<std::string> distinct;
  for (int from = 0; from < 12; ++from) {
    for (int to = 0; to < 12; ++to) {
      for (const LinkId id : route(cluster, from, to).links) {
        names[id] = link(cluster, id).name;
      }
    }
  }
  for (const auto& [id, name] : names) distinct.insert(name);
  MESSAGE("12 devices * 2 ports + 3 nodes * 2 cards * 2 directions = 36 links");
  CHECK_EQ(names.size(), 36);
  CHECK_EQ(distinct.size(), 36);
}

TEST_CASE("a device reaches itself without a link") {
  CHECK(route(machine(8), 5, 5).links.empty());
  CHECK_EQ(route(mesh(3), 1, 1).latency, Seconds());
}

TEST_CASE("a mesh of a million devices costs nothing until a link is used") {
  const Cluster cluster = mesh(1'000'000);
  const Route way = route(cluster, 999'999, 999'998);
  MESSAGE("link 999999 * 1000000 + 999998 does not fit in 32 bits");
  CHECK_EQ(way.links[0], LinkId{999'999'999'998});
  CHECK_EQ(link(cluster, way.links[0]).name, "999999->999998");
}

}  // namespace interlock::route_test
