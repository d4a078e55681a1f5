// Tori: grids written out by hand, distances by formula and by search, and bisections counted.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/hardware/link_graph.h"

namespace interlock::torus_test {
namespace {

using Dimensions = std::vector<int>;

Cluster devices_on(const Dimensions& dimensions) {
  Torus torus{
      .dimensions = dimensions, .of_devices = true, .link = {Seconds(1e-6), BytesPerSecond(70e9)}};
  Cluster cluster{.name = "torus",
                  .machines = {{.port_bandwidth = torus.link.bandwidth, .cards_per_node = 0}},
                  .devices = static_cast<int>(size(torus))};
  cluster.network = torus;
  return cluster;
}

Dimensions coordinates(int vertex, const Dimensions& dimensions) {
  Dimensions at;
  for (const int ring : dimensions) {
    at.push_back(vertex % ring);
    vertex /= ring;
  }
  return at;
}

/// Neighbours differ by one, around the ring, in one coordinate. A vertex is named `name` there.
template <class Name>
void add_grid(LinkGraph& graph, const Dimensions& dimensions, int vertices, const Name& name) {
  for (int a = 0; a < vertices; ++a) {
    for (int b = 0; b < vertices; ++b) {
      const Dimensions from = coordinates(a, dimensions);
      const Dimensions to = coordinates(b, dimensions);
      int apart = 0;
      for (std::size_t d = 0; d < dimensions.size(); ++d) {
        const int gap = std::abs(from[d] - to[d]);
        apart += std::min(gap, dimensions[d] - gap);
      }
      if (apart != 1) continue;
      graph.add(numbered("torus", a) + "->" + numbered("torus", b), name(a), name(b), 70e9);
    }
  }
}

}  // namespace

TEST_CASE("on a torus of devices every route is a shortest one, and every link is some route's") {
  for (const Dimensions& dimensions :
       {Dimensions{5}, Dimensions{2}, Dimensions{4, 4}, Dimensions{3, 5}, Dimensions{2, 6},
        Dimensions{2, 3, 4}, Dimensions{1, 4, 3}, Dimensions{2, 2, 2}}) {
    const Cluster cluster = devices_on(dimensions);
    CAPTURE(shape(std::get<Torus>(cluster.network)));
    LinkGraph graph;
    add_grid(graph, dimensions, cluster.devices, [](int v) { return numbered("gpu", v); });
    int links = 0;
    for (const int ring : dimensions) {
      links += ring == 1 ? 0 : cluster.devices * (ring == 2 ? 1 : 2);
    }
    MESSAGE("each device has a link to 2 neighbours a dimension, 1 in a ring of two: " << links);
    CHECK_EQ(graph.edges.size(), links);
    CHECK_EQ(check_routes(graph, cluster).size(), links);
    check_shortest(graph, cluster);
  }
}

TEST_CASE("a message finishes one dimension before it starts the next") {
  const Cluster cluster = devices_on({4, 3, 5});
  for (int from = 0; from < cluster.devices; ++from) {
    for (int to = 0; to < cluster.devices; ++to) {
      int last = 0;
      for (const LinkId id : route(cluster, from, to).links) {
        const std::string name = link(cluster, id).name;
        const int a = std::stoi(name.substr(5));
        const int b = std::stoi(name.substr(name.find("->torus") + 7));
        const Dimensions at = coordinates(a, {4, 3, 5});
        const Dimensions next = coordinates(b, {4, 3, 5});
        const int moved = at[0] != next[0] ? 0 : at[1] != next[1] ? 1 : 2;
        CHECK_GE(moved, last);
        last = moved;
      }
    }
  }
}

TEST_CASE("latency grows with the distance, which is at most half of every ring") {
  const Cluster cluster = devices_on({6, 4, 4});
  std::size_t longest = 0;
  double sum = 0;
  for (int to = 0; to < cluster.devices; ++to) {
    const Route way = route(cluster, 0, to);
    CHECK_EQ(way.latency.value(), doctest::Approx(1e-6 * static_cast<double>(way.links.size())));
    longest = std::max(longest, way.links.size());
    sum += static_cast<double>(way.links.size());
  }
  MESSAGE("3 + 2 + 2 at most; an even ring of k is k / 4 on average: 1.5 + 1 + 1");
  CHECK_EQ(longest, 7);
  CHECK_EQ(sum / cluster.devices, doctest::Approx(3.5));
}

TEST_CASE("messages half way round a ring use both directions equally") {
  const Cluster cluster = devices_on({8});
  std::map<LinkId, int> loads;
  for (int from = 0; from < 8; ++from) {
    for (const LinkId id : route(cluster, from, (from + 4) % 8).links) ++loads[id];
  }
  MESSAGE("8 messages x 4 hops / 16 links = 2");
  CHECK_EQ(loads.size(), 16);
  for (const auto& [id, load] : loads) CHECK_EQ(load, 2);
}

TEST_CASE("the bisection of a torus is two links for every row cut, each way") {
  const Cluster cluster = devices_on({8, 4});
  std::set<std::string> crossing;
  for (int from = 0; from < 32; ++from) {
    for (int to = 0; to < 32; ++to) {
      for (const LinkId id : route(cluster, from, to).links) {
        const std::string name = link(cluster, id).name;
        const int a = std::stoi(name.substr(5));
        const int b = std::stoi(name.substr(name.find("->torus") + 7));
        if (a % 8 < 4 && b % 8 >= 4) crossing.insert(name);
      }
    }
  }
  MESSAGE("4 rows x 2 cuts of a ring = 8 links from the left half to the right");
  CHECK_EQ(crossing.size(), 8);
}

TEST_CASE("nodes on a torus enter and leave it by their cards") {
  Cluster cluster{.name = "torus",
                  .machines = {{.devices_per_node = 2,
                                .port_latency = Seconds(2e-6),
                                .port_bandwidth = BytesPerSecond(300e9),
                                .cards_per_node = 1,
                                .card_latency = Seconds(5e-6),
                                .card_bandwidth = BytesPerSecond(25e9)}},
                  .devices = 24};
  cluster.network = Torus{.dimensions = {4, 3}, .link = {Seconds(1e-6), BytesPerSecond(70e9)}};
  LinkGraph graph = machine_graph(cluster, [](int node, int) { return numbered("torus", node); });
  add_grid(graph, {4, 3}, 12, [](int v) { return numbered("torus", v); });
  check_routes(graph, cluster);
  check_shortest(graph, cluster);
  MESSAGE("node 0 to node 5, at (1, 1): 5 us + 2 hops of 1 us");
  CHECK_EQ(route(cluster, 0, 10).latency.value(), doctest::Approx(7e-6));
  CHECK_EQ(route(cluster, 0, 10).bandwidth, BytesPerSecond(25e9));
}

}  // namespace interlock::torus_test
