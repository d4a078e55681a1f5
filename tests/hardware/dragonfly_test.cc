// Dragonflies: groups written out by hand, and minimal routes through them.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/hardware/link_graph.h"

namespace interlock::dragonfly_test {
namespace {

Cluster dragonfly(int groups, int routers, int nodes_per_router, int cables) {
  Cluster cluster{.name = std::to_string(groups) + " groups of " + std::to_string(routers) + ", " +
                          std::to_string(cables) + " cables",
                  .machines = {{.port_bandwidth = BytesPerSecond(300e9),
                                .card_latency = Seconds(10e-6),
                                .card_bandwidth = BytesPerSecond(25e9)}},
                  .devices = groups * routers * nodes_per_router};
  cluster.network = Dragonfly{.groups = groups,
                              .routers_per_group = routers,
                              .nodes_per_router = nodes_per_router,
                              .cables = cables,
                              .local = {Seconds(1e-6), BytesPerSecond(50e9)},
                              .global = {Seconds(2e-6), BytesPerSecond(20e9)}};
  return cluster;
}

/// Deals the cables of every group to its routers in turn; `only` two groups, or all if negative.
LinkGraph drawn(const Cluster& cluster, int one = -1, int other = -1) {
  const auto& fly = std::get<Dragonfly>(cluster.network);
  LinkGraph graph = machine_graph(
      cluster, [&](int node, int) { return numbered("router", node / fly.nodes_per_router); });
  const auto drawn_group = [&](int g) { return one < 0 || g == one || g == other; };
  std::vector<std::vector<std::vector<int>>> holders(fly.groups);  // [group][other][cable]: router
  for (int g = 0; g < fly.groups; ++g) {
    holders[g].resize(fly.groups);
    int router = 0;
    for (int h = 0; h < fly.groups; ++h) {
      for (int cable = 0; h != g && cable < fly.cables; ++cable) {
        holders[g][h].push_back(g * fly.routers_per_group + router);
        router = (router + 1) % fly.routers_per_group;
      }
    }
  }
  for (int g = 0; g < fly.groups; ++g) {
    if (!drawn_group(g)) continue;
    for (int a = 0; a < fly.routers_per_group; ++a) {
      for (int b = 0; b < a; ++b) {
        graph.add_cable(numbered("router", g * fly.routers_per_group + a),
                        numbered("router", g * fly.routers_per_group + b), 50e9);
      }
    }
    for (int h = 0; h < g; ++h) {
      if (!drawn_group(h)) continue;
      for (int cable = 0; cable < fly.cables; ++cable) {
        graph.add_cable(numbered("router", holders[g][h][cable]),
                        numbered("router", holders[h][g][cable]), 20e9, numbered(" cable", cable));
      }
    }
  }
  return graph;
}

}  // namespace

TEST_CASE("a dragonfly's routes take its links, and every link is some route's") {
  for (const auto& [groups, routers, cables] :
       {std::tuple{1, 4, 1}, std::tuple{4, 3, 1}, std::tuple{9, 2, 1}, std::tuple{3, 4, 2},
        std::tuple{5, 1, 1}, std::tuple{7, 2, 3}}) {
    const Cluster cluster = dragonfly(groups, routers, 2, cables);
    CAPTURE(cluster.name);
    const LinkGraph graph = drawn(cluster);
    const auto used = check_routes(graph, cluster);
    const int local = groups * routers * (routers - 1);
    const int global = groups * (groups - 1) * cables;
    MESSAGE("locals g a (a - 1) = " << local << ", globals g (g - 1) c = " << global
                                    << ", each card up and down");
    CHECK_EQ(graph.edges.size(), local + global + 4 * cluster.devices);
    MESSAGE("ports are not used: nodes of one device");
    CHECK_EQ(used.size(), local + global + 2 * cluster.devices);
  }
}

TEST_CASE("a minimal route is the shortest in the two groups it may touch") {
  const Cluster cluster = dragonfly(5, 3, 2, 1);
  const int in_group = 6;
  for (int g = 0; g < 5; ++g) {
    for (int h = 0; h < 5; ++h) {
      const LinkGraph graph = drawn(cluster, g, h);
      for (int from = g * in_group; from < (g + 1) * in_group; ++from) {
        const auto known = graph.distances(numbered("gpu", from));
        for (int to = h * in_group; to < (h + 1) * in_group; ++to) {
          INFO("from " << from << " to " << to);
          const Route way = route(cluster, from, to);
          const int links = known.at(numbered("gpu", to));
          CHECK_EQ(static_cast<int>(way.links.size()), links);
          if (from == to) continue;
          const double hops = links - 2 - (g == h ? 0 : 1);
          MESSAGE("10 us and 1 us a local hop, 2 us the cable");
          CHECK_EQ(way.latency.value(), doctest::Approx((10 + hops + (g == h ? 0 : 2)) * 1e-6));
        }
      }
    }
  }
}

TEST_CASE("the cables of a group are dealt evenly to its routers, and to messages") {
  const Cluster cluster = dragonfly(9, 4, 1, 2);
  std::map<std::string, std::set<LinkId>> held;  // by router
  std::map<LinkId, int> loads;
  for (int from = 0; from < 4; ++from) {
    for (int to = 4; to < cluster.devices; ++to) {
      for (const LinkId id : route(cluster, from, to).links) {
        const std::string name = link(cluster, id).name;
        if (name.find(" cable") == std::string::npos) continue;
        held[name.substr(0, name.find("->"))].insert(id);
        ++loads[id];
      }
    }
  }
  MESSAGE("8 other groups x 2 cables over 4 routers: 4 each; 4 x 4 messages over 2 cables: 8 each");
  CHECK_EQ(held.size(), 4);
  for (const auto& [router, cables] : held) CHECK_EQ(cables.size(), 4);
  for (const auto& [id, load] : loads) CHECK_EQ(load, 8);
}

TEST_CASE("a dragonfly of more groups than routers in a group routes too") {
  const Cluster cluster = dragonfly(32, 8, 8, 1);
  MESSAGE("32 groups and 8 routers, where SimGrid 3.32's own dragonfly breaks");
  for (int from = 0; from < cluster.devices; from += 7) {
    for (int to = 0; to < cluster.devices; to += 11) {
      CHECK_LE(route(cluster, from, to).links.size(), 5);
    }
  }
}

}  // namespace interlock::dragonfly_test
