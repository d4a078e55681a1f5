// Wide-area networks: every way against all simple ways, tried one by one.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <functional>

#include "base/random.h"
#include "tests/hardware/link_graph.h"

namespace interlock::wan_test {
namespace {

using Matrix = std::vector<LinkSpeed>;

LinkSpeed speed(double milliseconds, double gigabytes) {
  return {Seconds(milliseconds * 1e-3), BytesPerSecond(gigabytes * 1e9)};
}

/// `nodes_per_site` nodes of two devices and a card at every site.
Cluster on(const Wan& wan, int nodes_per_site) {
  Cluster cluster{.name = "wan",
                  .machines = {{.devices_per_node = 2,
                                .port_latency = Seconds(1e-6),
                                .port_bandwidth = BytesPerSecond(300e9),
                                .cards_per_node = 1,
                                .card_latency = Seconds(1e-5),
                                .card_bandwidth = BytesPerSecond(12.5e9)}},
                  .devices = wan.sites * nodes_per_site * 2};
  cluster.network = wan;
  lay_nodes(std::get<Wan>(cluster.network), std::vector<int>(wan.sites, nodes_per_site));
  return cluster;
}

LinkGraph drawn(const Cluster& cluster) {
  const auto& wan = std::get<Wan>(cluster.network);
  LinkGraph graph =
      machine_graph(cluster, [&](int node, int) { return numbered("site", wan.site_of[node]); });
  for (int a = 0; a < wan.sites; ++a) {
    for (int b = 0; b < wan.sites; ++b) {
      const double bandwidth = wan.links[a * wan.sites + b].bandwidth.value();
      if (bandwidth == 0) continue;
      graph.add(numbered("site", a) + "->" + numbered("site", b), numbered("site", a),
                numbered("site", b), bandwidth);
    }
  }
  return graph;
}

/// The least delay of all ways without a loop; negative if there is none.
double least_delay(const Wan& wan, int from, int to) {
  double best = -1;
  std::vector<bool> seen(wan.sites, false);
  const std::function<void(int, double)> visit = [&](int at, double delay) {
    if (at == to) {
      best = best < 0 ? delay : std::min(best, delay);
      return;
    }
    seen[at] = true;
    for (int next = 0; next < wan.sites; ++next) {
      const LinkSpeed& link = wan.links[at * wan.sites + next];
      if (seen[next] || link.bandwidth.value() == 0) continue;
      visit(next, delay + link.latency.value());
    }
    seen[at] = false;
  };
  visit(from, 0);
  return best;
}

/// Some of all connections, none on the diagonal; delays differ there and back.
Matrix random_links(int sites, Random& random) {
  Matrix links(std::size_t{1} * sites * sites);
  for (int a = 0; a < sites; ++a) {
    for (int b = 0; b < sites; ++b) {
      if (a == b || random.uniform() < 0.5) continue;
      links[a * sites + b] = speed(random.integer(0, 9), random.integer(1, 20));
    }
  }
  return links;
}

}  // namespace

TEST_CASE("connected sites use their own link, one for each direction, whatever a detour takes") {
  const LinkSpeed none;
  const Cluster cluster = on(join_sites(3, {none, speed(50, 2), speed(5, 1),  //
                                            speed(40, 3), none, speed(5, 1),  //
                                            speed(5, 1), speed(5, 1), none}),
                             1);
  using Names = std::vector<std::string>;
  const Route way = route(cluster, 0, 2);
  CHECK_EQ(link_names(cluster, way), Names{"node0 nic0 up", "site0->site1", "node1 nic0 down"});
  MESSAGE("50 ms and the cards' 10 us; 2 GB/s of the site is less than 12.5 GB/s of a card");
  CHECK_EQ(way.latency.value(), doctest::Approx(0.05001));
  CHECK_EQ(way.bandwidth, BytesPerSecond(2e9));
  CHECK_EQ(route(cluster, 2, 0).bandwidth, BytesPerSecond(3e9));
  CHECK_EQ(route(cluster, 2, 0).latency.value(), doctest::Approx(0.04001));
}

TEST_CASE("nodes of one site meet in their cards, or in the link that the diagonal names") {
  const LinkSpeed none;
  const Cluster own = on(join_sites(2, {none, speed(9, 1), speed(9, 1), speed(1, 5)}), 2);
  CHECK_EQ(route(own, 0, 2).links.size(), 2);
  CHECK_EQ(route(own, 0, 2).bandwidth, BytesPerSecond(12.5e9));
  CHECK_EQ(link_names(own, route(own, 4, 6)),
           std::vector<std::string>{"node2 nic0 up", "site1->site1", "node3 nic0 down"});
  CHECK_EQ(route(own, 4, 6).latency.value(), doctest::Approx(1.01e-3));
  MESSAGE("all nodes of a site share its link to another");
  CHECK_EQ(route(own, 0, 4).links[1], route(own, 2, 6).links[1]);
}

TEST_CASE(
    "without a connection the way of least delay over other sites is taken, if there is any") {
  int detours = 0;
  int apart = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Random random(seed, 1);
    const int sites = random.integer(2, 6);
    const Wan wan = join_sites(sites, random_links(sites, random));
    bool connected = true;
    for (int a = 0; a < sites; ++a) {
      for (int b = 0; b < sites; ++b) connected = connected && least_delay(wan, a, b) >= 0;
    }
    CHECK_EQ(disconnected(wan).has_value(), !connected);
    if (const auto pair = disconnected(wan)) {
      CHECK_LT(least_delay(wan, pair->first, pair->second), 0);
      ++apart;
      continue;
    }
    const Cluster cluster = on(wan, 1);
    const LinkGraph graph = drawn(cluster);
    for (int a = 0; a < sites; ++a) {
      for (int b = 0; b < sites; ++b) {
        if (a == b) continue;
        check_walk(graph, cluster, 2 * a, 2 * b);
        const LinkSpeed& direct = wan.links[a * sites + b];
        const bool linked = direct.bandwidth.value() > 0;
        const double delay = linked ? direct.latency.value() : least_delay(wan, a, b);
        CHECK_EQ(route(cluster, 2 * a, 2 * b).latency.value(), doctest::Approx(delay + 1e-5));
        detours += linked ? 0 : 1;
      }
    }
  }
  MESSAGE(detours << " detours, " << apart << " disconnected networks of 300");
  CHECK_GT(detours, 100);
  CHECK_GT(apart, 30);
}

}  // namespace interlock::wan_test
