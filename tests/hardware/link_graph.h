// A network written out link by link, against which routes are checked.
// SPDX-License-Identifier: Apache-2.0
//
// The oracle of every topology: tests say in plain loops which links there are and what they join.
// A name may stand for several edges: a card's wire leaves from each device that may use the card.
#pragma once

#include <doctest/doctest.h>

#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hardware/cluster.h"

namespace interlock {

inline std::string numbered(const std::string& what, int number) {
  return what + std::to_string(number);
}

struct LinkGraph {
  std::map<std::string, std::set<std::pair<std::string, std::string>>> edges;  // by name
  std::map<std::string, double> bandwidth;                                     // by name

  void add(const std::string& name, const std::string& from, const std::string& to, double speed) {
    edges[name].insert({from, to});
    bandwidth[name] = speed;
  }
  /// "NAME up" and "NAME down".
  void add_duplex(const std::string& name, const std::string& low, const std::string& high,
                  double speed) {
    add(name + " up", low, high, speed);
    add(name + " down", high, low, speed);
  }
  /// "A->B" and "B->A", `suffix` behind both.
  void add_cable(const std::string& a, const std::string& b, double speed,
                 const std::string& suffix = "") {
    add(a + "->" + b + suffix, a, b, speed);
    add(b + "->" + a + suffix, b, a, speed);
  }

  /// Fewest links from `start` to everywhere.
  std::map<std::string, int> distances(const std::string& start) const {
    std::map<std::string, std::vector<std::string>> next;
    for (const auto& [name, ends] : edges) {
      for (const auto& [from, to] : ends) next[from].push_back(to);
    }
    std::map<std::string, int> known = {{start, 0}};
    std::deque<std::string> open = {start};
    for (; !open.empty(); open.pop_front()) {
      for (const std::string& to : next[open.front()]) {
        if (known.try_emplace(to, known[open.front()] + 1).second) open.push_back(to);
      }
    }
    return known;
  }
};

/// The devices of a machine with a switch in each node, and their cards up to the vertices that
/// `network(node, card)` names.
template <class Vertex>
LinkGraph machine_graph(const Cluster& cluster, const Vertex& network) {
  LinkGraph graph;
  const int per_node = cluster.devices_per_node;
  for (int device = 0; device < cluster.devices; ++device) {
    const int node = device / per_node;
    const int card = device % per_node * cluster.cards_per_node / per_node;
    const std::string gpu = numbered("gpu", device);
    graph.add_duplex(gpu, gpu, numbered("switch", node), cluster.port_bandwidth.value());
    if (cluster.cards_per_node == 0) continue;
    graph.add_duplex(numbered("node", node) + numbered(" nic", card), gpu, network(node, card),
                     cluster.card_bandwidth.value());
  }
  return graph;
}

inline std::vector<std::string> link_names(const Cluster& cluster, const Route& way) {
  std::vector<std::string> names;
  for (const LinkId id : way.links) names.push_back(link(cluster, id).name);
  return names;
}

/// Follows `way` through the graph; fails where it does not hang together.
inline void check_walk(const LinkGraph& graph, const Cluster& cluster, int from, int to) {
  const Route way = route(cluster, from, to);
  std::set<std::string> at = {numbered("gpu", from)};
  double narrowest = 1e300;
  std::set<LinkId> seen;
  for (const LinkId id : way.links) {
    const Link taken = link(cluster, id);
    CAPTURE(taken.name);
    CHECK(seen.insert(id).second);
    const auto found = graph.edges.find(taken.name);
    REQUIRE(found != graph.edges.end());
    CHECK_EQ(taken.bandwidth.value(), doctest::Approx(graph.bandwidth.at(taken.name)));
    narrowest = std::min(narrowest, taken.bandwidth.value());
    std::set<std::string> next;
    for (const auto& [start, end] : found->second) {
      if (at.count(start) == 1) next.insert(end);
    }
    REQUIRE_FALSE(next.empty());
    at = next;
  }
  CHECK_EQ(at.count(numbered("gpu", to)), 1);
  CHECK_EQ(way.bandwidth.value(), narrowest);
}

/// Every route of the cluster hangs together, is there and back of the same length and latency over
/// different links, and the same when asked again; no two links share a name. Returns the names of
/// all links that some route uses.
inline std::set<std::string> check_routes(const LinkGraph& graph, const Cluster& cluster) {
  std::map<std::string, LinkId> ids;
  for (int from = 0; from < cluster.devices; ++from) {
    for (int to = 0; to < cluster.devices; ++to) {
      if (from == to) continue;
      INFO("from " << from << " to " << to);
      check_walk(graph, cluster, from, to);
      const Route way = route(cluster, from, to);
      const Route back = route(cluster, to, from);
      CHECK_EQ(way.links.size(), back.links.size());
      CHECK_EQ(way.latency.value(), doctest::Approx(back.latency.value()));
      CHECK(way.links == route(cluster, from, to).links);
      const std::set<LinkId> returning(back.links.begin(), back.links.end());
      for (const LinkId id : way.links) {
        CHECK_EQ(returning.count(id), 0);
        const auto [known, fresh] = ids.try_emplace(link(cluster, id).name, id);
        CHECK_EQ(known->second, id);
      }
    }
  }
  std::set<std::string> names;
  for (const auto& [name, id] : ids) names.insert(name);
  return names;
}

enum class Pairs { All, BetweenNodes };

/// No way through the graph has fewer links than the route.
inline void check_shortest(const LinkGraph& graph, const Cluster& cluster,
                           Pairs pairs = Pairs::All) {
  for (int from = 0; from < cluster.devices; ++from) {
    const auto known = graph.distances(numbered("gpu", from));
    for (int to = 0; to < cluster.devices; ++to) {
      if (pairs == Pairs::BetweenNodes &&
          from / cluster.devices_per_node == to / cluster.devices_per_node) {
        continue;
      }
      INFO("from " << from << " to " << to);
      CHECK_EQ(static_cast<int>(route(cluster, from, to).links.size()),
               known.at(numbered("gpu", to)));
    }
  }
}

/// Messages over the busiest link that is no port and no card, when device i sends to i + shift.
inline int worst_load(const Cluster& cluster, int shift) {
  std::map<LinkId, int> loads;
  int worst = 0;
  for (int from = 0; from < cluster.devices; ++from) {
    for (const LinkId id : route(cluster, from, (from + shift) % cluster.devices).links) {
      const std::string name = link(cluster, id).name;
      if (name.find("gpu") == 0 || name.find("nic") != std::string::npos) continue;
      worst = std::max(worst, ++loads[id]);
    }
  }
  return worst;
}

}  // namespace interlock
