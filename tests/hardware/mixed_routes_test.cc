// Routes between nodes of several machines, against links that are written out by hand.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <set>

#include "hardware/networks/cluster_reader.h"
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

/// Two nodes with devices of two kinds in a box, and the same nodes with devices of one kind.
struct Boxes {
  Cluster kinds, alike;
};

/// Reads a box of four devices, of which six are used in two nodes; `box` has its links.
Boxes boxes(const std::string& box, const std::string& network) {
  const std::string fast = R"({"name": "fast", "peak": {"bf16": "4 TFLOP/s"}, "memory": "2 GiB",
                              "memory_bandwidth": "1 TB/s", "efficiency": "peak"})";
  const std::string slow = R"({"name": "slow", "peak": {"bf16": "1 TFLOP/s"}, "memory": "1 GiB",
                              "memory_bandwidth": "1 TB/s", "efficiency": "peak"})";
  const std::string machine = R"({"kind": "machine", "nodes": 2, "devices": 6, )" + box + network;
  const auto read = [&](const std::string& own) {
    const JsonValue value = parse_json(machine + own + "}", "c.json");
    Diagnostics diagnostics;
    Cluster cluster = read_cluster({&value, "/cluster"}, diagnostics);
    for (const std::string& message : diagnostics.messages()) FAIL(message);
    return cluster;
  };
  return {read(R"("kinds": [{"device": )" + slow + R"(, "count": 3}, {"device": )" + fast + "}]"),
          read(R"("devices_per_node": 4, "device": )" + slow)};
}

TEST_CASE("devices of several kinds in a node use the links of the node that has one kind") {
  for (const std::string& box :
       {std::string(R"("port": {"bandwidth": "100 GB/s", "latency": "1 us"},
                       "host": {"bandwidth": "20 GB/s"},
                       "cards": {"per_node": 2, "bandwidth": "10 GB/s", "latency": "5 us"}, )"),
        std::string(R"("port": {"bandwidth": "30 GB/s"}, "host": {"bandwidth": "20 GB/s"},
                       "pcie": {"switches": 2, "sockets": 2, "uplink": {"bandwidth": "30 GB/s"},
                                "socket_link": {"bandwidth": "40 GB/s"}},
                       "cards": {"per_node": 1, "bandwidth": "10 GB/s", "latency": "5 us"}, )")}) {
    for (const std::string& network :
         {std::string(), std::string(R"("network": {"kind": "fat-tree", "nodes_per_leaf": 1,
                                                    "oversubscription": 2}, )")}) {
      const Boxes both = boxes(box, network);
      CHECK(nodes(both.kinds) == 2);
      for (int from = kHost; from < 6; ++from) {
        for (int to = kHost; to < 6; ++to) {
          if (from == to) continue;
          const Route own = route(both.kinds, from, to), like = route(both.alike, from, to);
          CHECK(own.links == like.links);
          CHECK(own.latency == like.latency);
          CHECK(own.bandwidth == like.bandwidth);
          for (const LinkId id : own.links) {
            CHECK(link(both.kinds, id).name == link(both.alike, id).name);
            CHECK(link(both.kinds, id).bandwidth == link(both.alike, id).bandwidth);
          }
        }
      }
      for (int device = 0; device < 6; ++device) {
        CHECK(machine_of(both.kinds, device).device.name == (device % 4 == 3 ? "fast" : "slow"));
        CHECK(node_of(both.kinds, device) == device / 4);
        CHECK(card_of(both.kinds, device) == card_of(both.alike, device));
      }
    }
  }
}

TEST_CASE("kinds of a node that do not fit it are refused") {
  const auto told = [](const std::string& text) {
    const JsonValue value = parse_json(text, "c.json");
    Diagnostics diagnostics;
    read_cluster({&value, "/cluster"}, diagnostics);
    std::string all;
    for (const std::string& message : diagnostics.messages()) all += message;
    return all;
  };
  const auto box = [](const std::string& own) {
    return R"({"machine": "pcie-rtx-4090", )" + own + "}";
  };
  const std::string kinds = R"("kinds": [{"device": "rtx-4090", "count": 4}, {"device": "rtx-3090",
      "count": 4}])";
  CHECK(told(box(kinds)) == "");
  CHECK(told(box(R"("device": "rtx-3090", )" + kinds)) ==
        "c.json:1: /cluster/device: given beside \"kinds\", which say it; expected one of the two");
  const std::string inside = R"({"kind": "machine", "port": {"bandwidth": "1 GB/s"}, )";
  CHECK(told(inside + kinds + "}") == "");
  CHECK(
      told(inside + R"("devices_per_node": 4, )" + kinds + "}").find("/devices_per_node: given") !=
      std::string::npos);
  CHECK(told(box(R"("kinds": [])")).find("wrong list of kinds; expected 1 to 64 objects") !=
        std::string::npos);
  CHECK(told(box(R"("kinds": [{"count": 4}])")).find("missing key \"device\"") !=
        std::string::npos);
  CHECK(told(box(R"("nodes": 600, )" + kinds)).find("expected at most 512 nodes") !=
        std::string::npos);
}

TEST_CASE("the power that a scenario writes is that of all kinds, else each has its own") {
  const std::string device = R"({"memory": "8 GiB", "memory_bandwidth": "1 TB/s",
      "peak": {"bf16": "1 TFLOP/s"}, "power": {"busy": ")";
  const std::string small = device + R"(300 W", "idle": "50 W"}})";
  const std::string large = device + R"(700 W", "idle": "50 W"}})";
  const auto busy_of_second = [&](const std::string& written) {
    const JsonValue value =
        parse_json(R"({"kind": "machine", "port": {"bandwidth": "1 GB/s"}, "kinds": [{"device": )" +
                       small + R"(}, {"device": )" + large + "}]" + written + "}",
                   "c.json");
    Diagnostics diagnostics;
    const Cluster cluster = read_cluster({&value, "/cluster"}, diagnostics);
    CHECK(diagnostics.messages().empty());
    return cluster.machines.at(1).device.power.value().busy.value();
  };
  CHECK(busy_of_second("") == 700);
  CHECK(busy_of_second(R"(, "power": {"busy": "300 W", "idle": "50 W"})") == 300);
}

}  // namespace
}  // namespace interlock::mixed_routes_test
