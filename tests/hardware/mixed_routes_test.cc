// Routes between nodes of several machines, against links that are written out by hand.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <set>

#include "tests/hardware/link_graph.h"

namespace interlock::mixed_routes_test {
namespace {

using Names = std::vector<std::string>;

/// Two nodes of three devices with one card, of which five devices are used; then two nodes of two
/// devices on a PCIe tree with a card each.
Cluster mixed() {
  const Machine first = {.name = "first",
                         .devices_per_node = 3,
                         .port_latency = Seconds(1e-6),
                         .port_bandwidth = BytesPerSecond(300e9),
                         .cards_per_node = 1,
                         .card_latency = Seconds(4e-6),
                         .card_bandwidth = BytesPerSecond(25e9),
                         .host = {Seconds(1e-6), BytesPerSecond(20e9)}};
  const Machine second = {
      .name = "second",
      .first_device = 5,
      .devices_per_node = 2,
      .port_latency = Seconds(2e-6),
      .port_bandwidth = BytesPerSecond(60e9),
      .cards_per_node = 2,
      .card_latency = Seconds(8e-6),
      .card_bandwidth = BytesPerSecond(10e9),
      .pcie =
          PcieTree{.switches = 1, .sockets = 1, .uplink = {Seconds(1e-6), BytesPerSecond(30e9)}},
      .host = {Seconds(2e-6), BytesPerSecond(9e9)}};
  return {.name = "mixed", .machines = {first, second}, .devices = 9};
}

/// The node of a device, and the names of its port and its card.
int node(int device) { return device < 5 ? device / 3 : 2 + (device - 5) / 2; }
std::string port(int device) { return "gpu" + std::to_string(device); }
std::string card(int device) {
  const int number = device < 5 ? 0 : (device - 5) % 2;
  return "node" + std::to_string(node(device)) + " nic" + std::to_string(number);
}

TEST_CASE("a device is of the machine whose devices hold its number") {
  const Cluster cluster = mixed();
  CHECK(nodes(cluster) == 4);
  CHECK(devices_of(cluster, 0) == 5);
  CHECK(devices_of(cluster, 1) == 4);
  for (int device = 0; device < 9; ++device) {
    CHECK(machine_of(cluster, device).name == (device < 5 ? "first" : "second"));
    CHECK(node_of(cluster, device) == node(device));
  }
}

TEST_CASE("a message between machines crosses what each end has of its own") {
  const Cluster cluster = mixed();
  std::set<LinkId> ids;
  std::set<std::string> all;
  for (int from = 0; from < 9; ++from) {
    for (int to = 0; to < 9; ++to) {
      if (from == to) continue;
      const Route way = route(cluster, from, to);
      Names names;
      if (node(from) == node(to)) {
        names = {port(from) + " up", port(to) + " down"};
        CHECK(way.latency == (from < 5 ? Seconds(1e-6) : Seconds(2e-6)));
      } else {
        if (from >= 5) names.push_back(port(from) + " up");
        names.push_back(card(from) + " up");
        names.push_back(card(to) + " down");
        if (to >= 5) names.push_back(port(to) + " down");
        MESSAGE("half of the latency of each card, and the narrower of them");
        const double ends = (from < 5 ? 2e-6 : 4e-6) + (to < 5 ? 2e-6 : 4e-6);
        CHECK(way.latency.value() == doctest::Approx(ends));
        CHECK(way.bandwidth == BytesPerSecond(from < 5 && to < 5 ? 25e9 : 10e9));
      }
      CHECK(link_names(cluster, way) == names);
      ids.insert(way.links.begin(), way.links.end());
      all.insert(names.begin(), names.end());
    }
  }
  CHECK(ids.size() == all.size());
}

TEST_CASE("each host is reached at the speed of its machine") {
  const Cluster cluster = mixed();
  CHECK(host_route(cluster, 4, HostDirection::ToHost).bandwidth == BytesPerSecond(20e9));
  CHECK(host_route(cluster, 8, HostDirection::FromHost).bandwidth == BytesPerSecond(9e9));
  CHECK(link_names(cluster, host_route(cluster, 4, HostDirection::ToHost)) ==
        Names{"gpu4 to host"});
  CHECK(link_names(cluster, host_route(cluster, 8, HostDirection::FromHost)).front() ==
        "gpu8 from host");
}

TEST_CASE("sites may have other numbers of nodes") {
  Cluster cluster = mixed();
  const LinkSpeed none, between = {Seconds(1e-3), BytesPerSecond(1e9)};
  Wan wan = join_sites(2, {none, between, between, none});
  lay_nodes(wan, {3, 1});
  cluster.network = wan;
  MESSAGE("node 2, of the second machine, is at the first site with both nodes of the first");
  CHECK(route(cluster, 0, 5).bandwidth == BytesPerSecond(10e9));
  CHECK(route(cluster, 0, 7).bandwidth == BytesPerSecond(1e9));
  CHECK(route(cluster, 6, 8).bandwidth == BytesPerSecond(1e9));
}

}  // namespace
}  // namespace interlock::mixed_routes_test
