// Networks, PCIe trees and cards as scenarios write them, and what is said when they do not fit.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/random.h"
#include "hardware/networks/cluster_reader.h"

namespace interlock::network_reader_test {
namespace {

struct Reading {
  Cluster cluster;
  std::string mistakes;  // one a line
};

Reading read(const std::string& text) {
  const JsonValue document = parse_json(text, "s.json");
  Diagnostics diagnostics;
  Reading reading{read_cluster({&document, "/cluster"}, diagnostics), ""};
  for (const std::string& message : diagnostics.messages()) {
    reading.mistakes += (reading.mistakes.empty() ? "" : "\n") + message;
  }
  return reading;
}

/// `nodes` nodes of a catalogued machine of eight devices and eight cards on `network`.
std::string on(const std::string& network, int nodes) {
  return R"({"machine": "dgx-h100", "nodes": )" + std::to_string(nodes) + R"(, "network": )" +
         network + "}";
}

/// A machine written out, of four devices a node.
std::string with(const std::string& members) {
  return R"({"kind": "machine", "device": "a100-80g", "devices_per_node": 4,
  "port": {"latency": "3 us", "bandwidth": "300 GB/s"}, )" +
         members + "}";
}

Cluster good(const std::string& text) {
  const Reading reading = read(text);
  CHECK_EQ(reading.mistakes, "");
  return reading.cluster;
}

std::string mistakes(const std::string& text) { return read(text).mistakes; }

const std::string kTree = R"({"kind": "fat-tree", "nodes_per_leaf": 4)";
const std::string kDragonfly = R"({"kind": "dragonfly", "groups": 3, "routers_per_group": 2,
  "nodes_per_router": 2, "local": {"bandwidth": "50 GB/s"}, "global": {"bandwidth": "25 GB/s"}})";

std::string torus(const std::string& dimensions, const std::string& more = "") {
  return R"({"kind": "torus", "dimensions": )" + dimensions +
         R"(, "link": {"latency": "1 us", "bandwidth": "70 GB/s"})" + more + "}";
}

std::string wan(const std::string& delay, const std::string& bandwidth) {
  return R"({"kind": "wan", "delay": )" + delay + R"(, "bandwidth": )" + bandwidth + "}";
}

}  // namespace

TEST_CASE("a fat tree counts its uplinks in cards") {
  const Cluster ordinary =
      good(on(kTree + R"(, "oversubscription": 2, "hop_latency": "1 us"})", 8));
  const auto& tree = std::get<FatTree>(ordinary.network);
  MESSAGE("4 nodes x 8 cards / 2");
  CHECK_EQ(tree.leaf.count, 16);
  CHECK_EQ(tree.leaf.bandwidth, BytesPerSecond(50e9));
  CHECK_EQ(tree.rails, 0);
  CHECK_EQ(tree.hop_latency, Seconds(1e-6));
  const Cluster railed = good(on(kTree + R"(, "rail_optimised": true, "paths": "hash",
    "leaves_per_pod": 2, "pod_oversubscription": 2})",
                                 16));
  const auto& rails = std::get<FatTree>(railed.network);
  MESSAGE("4 cards of one rail below a leaf, 2 leaves / 2 above an aggregation switch");
  CHECK_EQ(rails.rails, 8);
  CHECK_EQ(rails.leaf.count, 4);
  CHECK_EQ(rails.pod.count, 1);
  CHECK(rails.paths == PathChoice::Hash);
}

TEST_CASE("a network made for a number of nodes has them unless told otherwise") {
  const auto size_of = [](const std::string& network) {
    return good(R"({"machine": "dgx-h100", "network": )" + network + "}").devices;
  };
  CHECK_EQ(size_of(R"({"kind": "switch"})"), 8);
  CHECK_EQ(size_of(kTree + "}"), 8);
  CHECK_EQ(size_of(kDragonfly), 12 * 8);
  CHECK_EQ(size_of(torus("[4, 3]")), 12 * 8);
  CHECK_EQ(size_of(wan(R"([[null, "1 ms"], ["1 ms", null]])",
                       R"([[null, "1 GB/s"], ["1 GB/s", null]])")),
           2 * 8);
}

TEST_CASE("more cards than devices add up, fewer are shared") {
  const auto cards = [](int per_node) {
    return with(R"("nodes": 2, "cards": {"per_node": )" + std::to_string(per_node) +
                R"(, "bandwidth": "100 Gb/s"})");
  };
  const Cluster striped = good(cards(12));
  MESSAGE("12 cards of 12.5 GB/s for 4 devices: 37.5 GB/s each");
  CHECK_EQ(route(striped, 1, 6).bandwidth.value(), doctest::Approx(37.5e9));
  CHECK_NE(route(striped, 0, 4).links[0], route(striped, 1, 4).links[0]);
  const Cluster shared = good(cards(2));
  CHECK_EQ(route(shared, 1, 6).bandwidth, BytesPerSecond(12.5e9));
  CHECK_EQ(route(shared, 0, 4).links[0], route(shared, 1, 4).links[0]);
  CHECK_EQ(mistakes(cards(6)),
           "s.json:2: /cluster/cards: cards that cannot be divided among devices; expected at most "
           "the 4 devices of a node, or a multiple of them, got 6");
}

TEST_CASE("on a torus of devices the torus takes the place of ports") {
  const Cluster cluster = good(R"({"kind": "machine", "device": "h100", "devices_per_node": 4,
    "network": )" + torus("[4, 4]", R"(, "of": "devices")") +
                               "}");
  CHECK_EQ(cluster.devices, 16);
  CHECK_EQ(cluster.machines.front().port_bandwidth, BytesPerSecond(70e9));
  MESSAGE("from (0, 0) to (3, 1), around the ring");
  CHECK_EQ(route(cluster, 0, 7).links.size(), 2);
  CHECK_EQ(mistakes(with("\"network\": " + torus("[4]", R"(, "of": "devices")"))),
           "s.json:2: /cluster/port: nothing uses a port on a torus of devices; expected a torus "
           "of nodes, or no port");
  CHECK(mistakes(on(torus("[4]", R"(, "of": "devices")"), 1))
            .starts_with("s.json:1: /cluster/network: nothing uses network cards on a torus of "
                         "devices; expected a torus of nodes, or a machine without \"cards\""));
}

TEST_CASE("a PCIe tree and the way to the host are read") {
  const Cluster cluster = good(with(R"("pcie": {"sockets": 2, "switches": 2,
    "uplink": {"bandwidth": "24 GB/s"}, "socket_link": {"latency": "1 us", "bandwidth": "20 GB/s"}},
    "host": {"latency": "2 us", "bandwidth": "25 GB/s", "memory": "512 GB"})"));
  CHECK_EQ(cluster.machines.front().host_memory, Bytes(512e9));
  CHECK_EQ(route(cluster, 0, 3).bandwidth, BytesPerSecond(20e9));
  CHECK_EQ(host_route(cluster, 0, HostDirection::ToHost).bandwidth, BytesPerSecond(24e9));
  CHECK_EQ(mistakes(with(R"("host": {"bandwidth": "25 GB/s", "memory": "0 GB"})")),
           "s.json:2: /cluster/host/memory: out of range; expected 1 B to 1000 PB, got \"0 GB\"");
  CHECK_EQ(mistakes(with(R"("pcie": {"sockets": 2, "switches": 3})")),
           "s.json:2: /cluster/pcie: missing key \"uplink\"; expected an object with \"latency\" "
           "and \"bandwidth\"\n"
           "s.json:2: /cluster/pcie: missing key \"socket_link\"; expected an object with "
           "\"latency\" and \"bandwidth\"\n"
           "s.json:2: /cluster/pcie: a tree that is not even; expected as many switches for each "
           "socket and devices for each switch, got 4 devices, 3 switches and 2 sockets");
}

TEST_CASE("devices of a node are joined by a switch, by pairs or by a PCIe tree") {
  const auto rate = [](const std::string& more) {
    return route(good(with(R"("node_topology": )" + more)), 0, 3).bandwidth;
  };
  CHECK_EQ(rate(R"("pairs")"), rate(R"("switch")") / 3.0);
  CHECK_EQ(mistakes(with(R"("node_topology": "pairs", "pcie": {})")),
           "s.json:2: /cluster/node_topology: devices on a PCIe tree have no links by pairs; "
           "expected \"switch\"");
}

TEST_CASE("nodes that do not fill leaves, pods, groups or grids are told with the numbers") {
  const std::string at = "s.json:1: /cluster/nodes: ";
  CHECK_EQ(mistakes(on(kTree + "}", 6)),
           at + "6 nodes do not fill leaves of 4; expected at most 4, or a multiple of it");
  CHECK_EQ(mistakes(on(kTree + R"(, "leaves_per_pod": 2})", 12)),
           at + "3 leaves of 4 nodes do not fill pods of 2; expected at most 2, or a multiple of "
                "it");
  CHECK_EQ(mistakes(on(kDragonfly, 10)),
           at + "a dragonfly of 3 groups x 2 routers x 2 nodes; expected 12 nodes, got 10");
  CHECK_EQ(mistakes(on(torus("[4, 4, 2]"), 30)),
           at + "a torus of 4 x 4 x 2 nodes; expected 32 nodes, got 30");
  CHECK_EQ(mistakes(R"({"kind": "machine", "device": "h100", "devices_per_node": 4, "nodes": 2,
             "network": )" +
                    torus("[3, 3]", R"(, "of": "devices")") + "}"),
           "s.json:1: /cluster/nodes: a torus of 3 x 3 devices; expected 9 devices in nodes of 4, "
           "got 8");
  CHECK_EQ(mistakes(on(wan(R"([[null, "1 ms"], ["1 ms", null]])",
                           R"([[null, "1 GB/s"], ["1 GB/s", null]])"),
                       3)),
           at + "3 nodes cannot be divided among 2 sites; expected a multiple of 2");
}

TEST_CASE("sites that cannot reach each other are named") {
  CHECK_EQ(mistakes(on(wan(R"([[null, "1 ms", null], ["1 ms", null, null], [null, "2 ms", null]])",
                           R"([[null, "1 GB/s", null], ["1 GB/s", null, null],
                               [null, "1 GB/s", null]])"),
                       3)),
           "s.json:1: /cluster/network/bandwidth: disconnected: site 0 cannot reach site 2; "
           "expected a connection between them, or a way over other sites");
}

TEST_CASE("matrices must be square, of one size, and agree on who is connected") {
  const std::string at = "s.json:1: /cluster/network/";
  CHECK_EQ(mistakes(on(wan("[]", "3"), 1)),
           at + "delay: no matrix; expected 1 to 256 rows, one for each site\n" + at +
               "bandwidth: no matrix; expected 1 to 256 rows, one for each site");
  CHECK_EQ(mistakes(on(wan(R"([[null, "1 ms"], [null]])", R"([[null]])"), 1)),
           at +
               "delay/1: wrong row; expected a list of 2 values, one for each site, or null where "
               "there is no connection\n" +
               at + "bandwidth: wrong size; expected 2 rows as in \"delay\", got 1");
  CHECK_EQ(
      mistakes(
          on(wan(R"([[null, "1 ms"], ["1 ms", null]])", R"([[null, "0 GB/s"], [null, null]])"), 2)),
      at +
          "bandwidth/0/1: must be above zero; expected a bandwidth such as \"450 GB/s\", got "
          "\"0 GB/s\"\n" +
          at +
          "bandwidth/1/0: half a connection; expected a bandwidth, or null in both "
          "matrices");
}

TEST_CASE("networks say what they lack and what they do not know") {
  const std::string at = "s.json:1: /cluster/network";
  CHECK_EQ(mistakes(on(R"({"kind": "ring"})", 1)),
           at + "/kind: unknown name \"ring\"; known: switch, fat-tree, dragonfly, torus, wan");
  CHECK_EQ(mistakes(on(R"({"kind": "fat-tree", "levels": 3, "pod_oversubscription": 2,
                           "oversubscription": 0})",
                       1)),
           "s.json:1: /cluster/network: missing key \"nodes_per_leaf\"; expected a whole number\n"
           "s.json:2: /cluster/network/oversubscription: expected a number from 0.1 to 1000, got "
           "0\n"
           "s.json:1: /cluster/network/pod_oversubscription: a tree without pods; expected "
           "\"leaves_per_pod\" too\n"
           "s.json:1: /cluster/network/levels: unknown key; known: kind, nodes_per_leaf, "
           "leaves_per_pod, rail_optimised, oversubscription, pod_oversubscription, hop_latency, "
           "paths");
  CHECK_EQ(mistakes(on(torus("[]"), 1)),
           at + "/dimensions: wrong list of dimensions; expected 1 to 6 ring sizes such as [4, 4, "
                "2]");
  CHECK_EQ(mistakes(on(torus("[1000, 1000, 1000]"), 1)),
           at + "/dimensions: too large; expected at most 1000000 in all, got 1000 x 1000 x 1000");
  CHECK_EQ(mistakes(with("\"network\": " + kTree + "}")),
           "s.json:2: /cluster/network: there are no network cards to join; expected \"cards\" "
           "too");
}

TEST_CASE("random nonsense about clusters is told or built, and what is built has its routes") {
  const std::vector<std::string> seeds = {
      on(kTree + R"(, "leaves_per_pod": 2, "oversubscription": 1.5, "rail_optimised": true})", 16),
      on(kDragonfly, 12), on(torus("[2, 3, 2]"), 12),
      on(wan(R"([[null, "1 ms"], ["2 ms", "1 us"]])",
             R"([[null, "1 GB/s"], ["2 GB/s", "9 GB/s"]])"),
         4),
      with(R"("nodes": 3, "pcie": {"sockets": 2, "switches": 2, "uplink": {"bandwidth": "24 GB/s"},
        "socket_link": {"bandwidth": "20 GB/s"}}, "host": {"bandwidth": "25 GB/s"},
        "cards": {"per_node": 8, "bandwidth": "100 Gb/s"})")};
  const std::vector<std::string> words = {"0",    "1",          "-1",       "7",     "1e9",
                                          "0.3",  "null",       "[]",       "{}",    "\"\"",
                                          "true", "\"1 GB/s\"", "\"2 ms\"", "[2, 2]"};
  int built = 0;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    Random random(seed, 9);
    std::string text = seeds[random.bits() % seeds.size()];
    for (int change = random.integer(1, 2); change > 0; --change) {
      // A value: what stands behind a colon, up to what may end it.
      std::size_t begin = random.bits() % text.size();
      begin = text.find_first_of(":[", begin);
      if (begin == std::string::npos) continue;
      const std::size_t end = text.find_first_of(",}]", ++begin);
      if (end == std::string::npos) continue;
      text.replace(begin, end - begin, words[random.bits() % words.size()]);
    }
    Reading reading;
    try {
      reading = read(text);
    } catch (const Error&) {
      continue;  // no JSON any more
    }
    if (!reading.mistakes.empty()) continue;
    ++built;
    const Cluster& cluster = reading.cluster;
    for (int trial = 0; trial < 30; ++trial) {
      const int from = random.integer(0, cluster.devices - 1);
      const int to = random.integer(0, cluster.devices - 1);
      for (const LinkId id : route(cluster, from, to).links) {
        CHECK_GT(link(cluster, id).bandwidth, BytesPerSecond());
      }
    }
  }
  MESSAGE(built << " of 4000 were built");
  CHECK_GT(built, 200);
}

TEST_CASE("clusters of 16,384 devices route everywhere") {
  for (const std::string& network :
       {R"({"kind": "fat-tree", "nodes_per_leaf": 32, "leaves_per_pod": 8, "hop_latency": "1 us",
            "rail_optimised": true})" +
            std::string(),
        torus("[8, 16, 16]"),
        R"({"kind": "dragonfly", "groups": 32, "routers_per_group": 16, "nodes_per_router": 4,
            "local": {"bandwidth": "50 GB/s"}, "global": {"bandwidth": "25 GB/s"}})" +
            std::string()}) {
    const Cluster cluster = good(on(network, 2048));
    REQUIRE_EQ(cluster.devices, 16384);
    Random random(1, 1);
    for (int trial = 0; trial < 10'000; ++trial) {
      const int from = random.integer(0, 16383);
      const int to = random.integer(0, 16383);
      const Route way = route(cluster, from, to);
      CHECK_EQ(way.links.empty(), from == to);
      for (const LinkId id : way.links) CHECK_GE(link(cluster, id).bandwidth, way.bandwidth);
    }
  }
}

}  // namespace interlock::network_reader_test
