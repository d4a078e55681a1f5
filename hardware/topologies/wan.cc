// Ways between sites: the direct link, or Dijkstra's, backwards from each destination.
// SPDX-License-Identifier: Apache-2.0
//
// Numbering: from * sites + to.
#include "hardware/topologies/wan.h"

#include "base/error.h"

namespace interlock {
namespace {

std::size_t pair_of(int sites, int from, int to) {
  return static_cast<std::size_t>(from) * static_cast<std::size_t>(sites) +
         static_cast<std::size_t>(to);
}

/// The shortest way known from one site to the destination.
struct Distance {
  Seconds delay;
  int hops = 0;
  bool reached = false;
  bool settled = false;
};

bool nearer(const Distance& a, const Distance& b) {
  if (a.reached != b.reached) return a.reached;
  return a.delay < b.delay || (a.delay == b.delay && a.hops < b.hops);
}

/// Returns the nearest site that is reached but not settled; -1 if there is none.
int nearest_open(const std::vector<Distance>& distances) {
  int best = -1;
  for (int site = 0; site < static_cast<int>(distances.size()); ++site) {
    const Distance& distance = distances[static_cast<std::size_t>(site)];
    if (distance.settled || !distance.reached) continue;
    if (best < 0 || nearer(distance, distances[static_cast<std::size_t>(best)])) best = site;
  }
  return best;
}

void find_ways_to(int target, Wan& wan) {
  std::vector<Distance> distances(static_cast<std::size_t>(wan.sites));
  distances[static_cast<std::size_t>(target)].reached = true;
  for (int site = target; site >= 0; site = nearest_open(distances)) {
    Distance& here = distances[static_cast<std::size_t>(site)];
    here.settled = true;
    for (int from = 0; from < wan.sites; ++from) {
      const LinkSpeed& link = wan.links[pair_of(wan.sites, from, site)];
      Distance& known = distances[static_cast<std::size_t>(from)];
      if (known.settled || link.bandwidth == BytesPerSecond()) continue;
      const Distance found{here.delay + link.latency, here.hops + 1, true, false};
      if (!nearer(found, known)) continue;
      known = found;
      wan.next[pair_of(wan.sites, from, target)] = site;
    }
  }
}

}  // namespace

Wan join_sites(int sites, std::vector<LinkSpeed> links) {
  CHECK(links.size() == pair_of(sites, sites, 0), "one link for each pair of sites");
  Wan wan{.sites = sites, .links = std::move(links)};
  wan.next.assign(wan.links.size(), -1);
  for (int target = 0; target < sites; ++target) find_ways_to(target, wan);
  lay_nodes(wan, std::vector<int>(static_cast<std::size_t>(sites), 1));
  return wan;
}

void lay_nodes(Wan& wan, const std::vector<int>& nodes) {
  CHECK(nodes.size() == static_cast<std::size_t>(wan.sites), "a number of nodes for each site");
  wan.site_of.clear();
  for (int site = 0; site < wan.sites; ++site) {
    const auto count = static_cast<std::size_t>(nodes[static_cast<std::size_t>(site)]);
    wan.site_of.insert(wan.site_of.end(), count, site);
  }
}

std::optional<std::pair<int, int>> disconnected(const Wan& wan) {
  for (int from = 0; from < wan.sites; ++from) {
    for (int to = 0; to < wan.sites; ++to) {
      if (from != to && wan.next[pair_of(wan.sites, from, to)] < 0) return std::pair(from, to);
    }
  }
  return std::nullopt;
}

void cross(const Wan& wan, int from_node, int to_node, LinkId first, Route& route) {
  int at = wan.site_of[static_cast<std::size_t>(from_node)];
  const int to = wan.site_of[static_cast<std::size_t>(to_node)];
  const auto has_link = [&](int a, int b) {
    return wan.links[pair_of(wan.sites, a, b)].bandwidth > BytesPerSecond();
  };
  const auto take = [&](int next) {
    const std::size_t pair = pair_of(wan.sites, at, next);
    cross(route, first + static_cast<LinkId>(pair), wan.links[pair].bandwidth);
    route.latency += wan.links[pair].latency;
    at = next;
  };
  if (has_link(at, to)) {
    take(to);
    return;
  }
  while (at != to) {
    const int next = wan.next[pair_of(wan.sites, at, to)];
    CHECK(next >= 0, "sites that can reach each other");
    take(next);
  }
}

Link link(const Wan& wan, LinkId id) {
  return {"site" + std::to_string(id / wan.sites) + "->site" + std::to_string(id % wan.sites),
          wan.links[static_cast<std::size_t>(id)].bandwidth};
}

}  // namespace interlock
