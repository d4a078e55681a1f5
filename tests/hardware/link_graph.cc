// Checks every route of a cluster against a network written out link by link.
// SPDX-License-Identifier: Apache-2.0
#include "tests/hardware/link_graph.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>

namespace interlock {

std::map<std::string, int> LinkGraph::distances(const std::string& start) const {
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

std::vector<std::string> link_names(const Cluster& cluster, const Route& way) {
  std::vector<std::string> names;
  for (const LinkId id : way.links) names.push_back(link(cluster, id).name);
  return names;
}

void check_walk(const LinkGraph& graph, const Cluster& cluster, int from, int to) {
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

std::set<std::string> check_routes(const LinkGraph& graph, const Cluster& cluster) {
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

void check_shortest(const LinkGraph& graph, const Cluster& cluster, Pairs pairs) {
  for (int from = 0; from < cluster.devices; ++from) {
    const auto known = graph.distances(numbered("gpu", from));
    for (int to = 0; to < cluster.devices; ++to) {
      if (pairs == Pairs::BetweenNodes && from / cluster.machines.front().devices_per_node ==
                                              to / cluster.machines.front().devices_per_node) {
        continue;
      }
      INFO("from " << from << " to " << to);
      CHECK_EQ(static_cast<int>(route(cluster, from, to).links.size()),
               known.at(numbered("gpu", to)));
    }
  }
}

int worst_load(const Cluster& cluster, int shift) {
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
