// Fat trees: their links, lengths, bisections and rails, against trees written out by hand.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/hardware/link_graph.h"

namespace interlock::fat_tree_test {
namespace {

constexpr double kCard = 25e9;

/// Nodes of `devices` devices and as many cards.
Cluster machine(int nodes, int devices) {
  return {.name = "tree",
          .machines = {{.devices_per_node = devices,
                        .port_latency = Seconds(3e-6),
                        .port_bandwidth = BytesPerSecond(300e9),
                        .cards_per_node = devices,
                        .card_latency = Seconds(10e-6),
                        .card_bandwidth = BytesPerSecond(kCard)}},
          .devices = nodes * devices};
}

FatTree tree_of(int nodes_per_leaf, int below, double oversubscription) {
  return {.nodes_per_leaf = nodes_per_leaf,
          .leaf = uplinks_for(below, BytesPerSecond(kCard), oversubscription),
          .hop_latency = Seconds(1e-6)};
}

/// Links of two levels: each of `leaves` of a plane to each of `spines`.
void add_levels(LinkGraph& graph, const std::string& plane, int leaves, int spines, double speed) {
  for (int leaf = 0; leaf < leaves; ++leaf) {
    for (int spine = 0; spine < spines; ++spine) {
      const std::string name = plane + numbered("leaf", leaf) + numbered(" spine", spine);
      graph.add_duplex(name, plane + numbered("leaf", leaf), plane + numbered("spine", spine),
                       speed);
    }
  }
}

/// Sum of the bandwidths of links whose name starts and ends so.
double bandwidth_of(const LinkGraph& graph, const std::string& start, const std::string& end) {
  double sum = 0;
  for (const auto& [name, speed] : graph.bandwidth) {
    if (name.starts_with(start) && name.ends_with(end)) sum += speed;
  }
  return sum;
}

}  // namespace

TEST_CASE("a fat tree of two levels has the links that drawing it gives, and no way is shorter") {
  Cluster cluster = machine(6, 2);
  cluster.network = tree_of(2, 4, 2);
  MESSAGE("a leaf has 2 nodes x 2 cards; oversubscribed twice: 4 / 2 = 2 uplinks of a card each");
  LinkGraph graph =
      machine_graph(cluster, [](int node, int) { return numbered("leaf", node / 2); });
  add_levels(graph, "", 3, 2, kCard);
  const auto used = check_routes(graph, cluster);
  check_shortest(graph, cluster);
  MESSAGE("12 devices x 2 + 12 cards x 2 + 3 leaves x 2 uplinks x 2 directions = 60 links");
  CHECK_EQ(graph.edges.size(), 60);
  CHECK_EQ(used.size(), 60);
  MESSAGE("up, card | leaf up, spine down | card: 10 us + 2 hops of 1 us");
  CHECK_EQ(route(cluster, 0, 11).latency.value(), doctest::Approx(12e-6));
  MESSAGE("one switch: 10 us");
  CHECK_EQ(route(cluster, 0, 2).latency.value(), doctest::Approx(10e-6));
  CHECK_EQ(route(cluster, 0, 1).latency.value(), doctest::Approx(3e-6));
}

TEST_CASE("a fat tree of three levels passes a core only between pods") {
  Cluster cluster = machine(16, 1);
  FatTree tree = tree_of(2, 2, 1);
  tree.leaves_per_pod = 4;
  tree.pod = uplinks_for(4, tree.leaf.bandwidth, 2);
  cluster.network = tree;
  LinkGraph graph =
      machine_graph(cluster, [](int node, int) { return numbered("leaf", node / 2); });
  for (int leaf = 0; leaf < 8; ++leaf) {
    for (int above = 0; above < 2; ++above) {
      const std::string pod = numbered("pod", leaf / 4) + numbered(" agg", above);
      graph.add_duplex(numbered("leaf", leaf) + numbered(" agg", above), numbered("leaf", leaf),
                       pod, kCard);
      for (int core = 0; core < 2; ++core) {
        graph.add_duplex(pod + numbered(" core", core), pod, numbered("core", 2 * above + core),
                         kCard);
      }
    }
  }
  MESSAGE("16 ports and 16 cards, 8 leaves x 2 uplinks, 2 pods x 2 aggregations x 4 / 2 cores");
  CHECK_EQ(graph.edges.size(), 2 * (16 + 16 + 16 + 8));
  const auto used = check_routes(graph, cluster);
  check_shortest(graph, cluster);
  MESSAGE("all but the ports, which no message between nodes of one device uses");
  CHECK_EQ(used.size(), 2 * (16 + 16 + 8));
  CHECK_EQ(route(cluster, 0, 15).latency.value(), doctest::Approx(14e-6));
  CHECK_EQ(route(cluster, 0, 7).latency.value(), doctest::Approx(12e-6));
}

TEST_CASE("the uplinks of a leaf carry its cards' bandwidth over the oversubscription, exactly") {
  for (const int below : {1, 2, 7, 16, 32}) {
    for (const double ratio : {0.5, 1.0, 1.5, 3.0, 7.0, 100.0}) {
      const Uplinks uplinks = uplinks_for(below, BytesPerSecond(kCard), ratio);
      INFO(below << " cards, ratio " << ratio);
      CHECK_GE(uplinks.count, 1);
      CHECK_EQ(uplinks.count * uplinks.bandwidth.value(), doctest::Approx(below * kCard / ratio));
      if (below >= ratio) CHECK_LE(std::abs(uplinks.count - below / ratio), 0.5);
    }
  }
}

TEST_CASE("half the cards can send through the spines at once what the oversubscription leaves") {
  for (const double ratio : {1.0, 2.0, 4.0}) {
    Cluster cluster = machine(8, 2);
    cluster.network = tree_of(4, 8, ratio);
    LinkGraph graph;
    for (int from = 0; from < 16; ++from) {
      for (const LinkId id : route(cluster, from, (from + 8) % 16).links) {
        const Link taken = link(cluster, id);
        graph.bandwidth[taken.name] = taken.bandwidth.value();
      }
    }
    MESSAGE("8 cards of 25 GB/s below a leaf / " << ratio);
    CHECK_EQ(bandwidth_of(graph, "leaf0 ", " up"), doctest::Approx(8 * kCard / ratio));
    CHECK_EQ(bandwidth_of(graph, "leaf1 ", " down"), doctest::Approx(8 * kCard / ratio));
  }
}

TEST_CASE("shifts never collide in a tree that is not oversubscribed, two levels or three") {
  Cluster cluster = machine(16, 2);
  cluster.network = tree_of(4, 8, 1);
  FatTree deep = tree_of(2, 4, 1);
  deep.leaves_per_pod = 2;
  deep.pod = uplinks_for(2, deep.leaf.bandwidth, 1);
  Cluster pods = cluster;
  pods.network = deep;
  for (int shift = 1; shift < 32; ++shift) {
    CAPTURE(shift);
    CHECK_LE(worst_load(cluster, shift), 1);
    CHECK_LE(worst_load(pods, shift), 1);
  }
  MESSAGE("by a hash some do: it knows nothing of the others");
  deep.paths = PathChoice::Hash;
  pods.network = deep;
  CHECK_GT(worst_load(pods, 16), 1);
}

TEST_CASE("a hash spreads messages over all spines about evenly") {
  Cluster cluster = machine(64, 1);
  FatTree tree = tree_of(32, 32, 8);
  tree.paths = PathChoice::Hash;
  cluster.network = tree;
  std::map<LinkId, int> loads;
  for (int from = 0; from < 32; ++from) {
    for (int to = 32; to < 64; ++to) ++loads[route(cluster, from, to).links[1]];
  }
  MESSAGE("1024 messages over 4 uplinks: 256 each, deviation sqrt(1024 * 1/4 * 3/4) = 14");
  CHECK_EQ(loads.size(), 4);
  for (const auto& [id, load] : loads) CHECK_LT(std::abs(load - 256), 5 * 14);
}

TEST_CASE("rails are trees of their own, reached inside the sender's node") {
  Cluster cluster = machine(4, 4);
  FatTree tree = tree_of(2, 2, 1);
  tree.rails = 4;
  cluster.network = tree;
  LinkGraph graph = machine_graph(cluster, [](int node, int card) {
    return numbered("rail", card) + numbered(" leaf", node / 2);
  });
  for (int rail = 0; rail < 4; ++rail) add_levels(graph, numbered("rail", rail) + " ", 2, 2, kCard);
  MESSAGE("16 ports, 16 cards, 4 rails x 2 leaves x 2 uplinks, each up and down");
  CHECK_EQ(check_routes(graph, cluster).size(), 2 * (16 + 16 + 16));
  check_shortest(graph, cluster);
  using Names = std::vector<std::string>;
  CHECK_EQ(link_names(cluster, route(cluster, 1, 5)), Names{"node0 nic1 up", "node1 nic1 down"});
  MESSAGE("device 1 to device 2 of node 1: over device 2 of node 0, which is on that rail");
  CHECK_EQ(link_names(cluster, route(cluster, 1, 6)),
           Names{"gpu1 up", "gpu2 down", "node0 nic2 up", "node1 nic2 down"});
  CHECK_EQ(route(cluster, 1, 6).latency.value(), doctest::Approx(3e-6 + 10e-6));
  MESSAGE("equal local numbers never meet others: 4 shifts by whole nodes load each link once");
  for (int shift = 4; shift < 16; shift += 4) CHECK_LE(worst_load(cluster, shift), 1);
}

TEST_CASE("a message changes rails inside its node even where the scenario uses a part of it") {
  Cluster cluster = machine(2, 4);
  FatTree tree = tree_of(2, 2, 1);
  tree.rails = 4;
  cluster.network = tree;
  cluster.devices = 6;
  CHECK_EQ(link_names(cluster, route(cluster, 4, 3)),
           std::vector<std::string>{"gpu4 up", "gpu7 down", "node1 nic3 up", "node0 nic3 down"});
}

TEST_CASE("two levels of NVLink are a leaf of two nodes, and the way on its uplinks") {
  // NVL36x2: 36 GPUs behind switches of 900 GB/s each, two such racks joined by as many, and a card
  // of 50 GB/s a GPU beyond: 72 x 900 GB/s below a leaf, 72 x 50 GB/s above it, 18 times less.
  constexpr double kNvlink = 900e9;
  Cluster cluster = {.name = "two levels",
                     .machines = {{.devices_per_node = 36,
                                   .port_latency = Seconds(3e-6),
                                   .port_bandwidth = BytesPerSecond(kNvlink),
                                   .cards_per_node = 36,
                                   .card_latency = Seconds(10e-6),
                                   .card_bandwidth = BytesPerSecond(kNvlink)}},
                     .devices = 4 * 36};
  const FatTree tree = {.nodes_per_leaf = 2,
                        .leaf = uplinks_for(72, BytesPerSecond(kNvlink), 18),
                        .hop_latency = Seconds(1e-6)};
  cluster.network = tree;
  double up = 0;
  for (const LinkId id : route(cluster, 0, 36).links) {
    CHECK(link(cluster, id).bandwidth.value() == kNvlink);  // the other rack of the leaf
  }
  for (const LinkId id : route(cluster, 0, 72).links) {
    const Link one = link(cluster, id);
    if (one.name.find("spine") != std::string::npos) up = one.bandwidth.value();
  }
  CHECK(up * tree.leaf.count == doctest::Approx(72 * 50e9));
}

}  // namespace interlock::fat_tree_test
