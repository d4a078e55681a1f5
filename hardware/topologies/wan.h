// Wide-area network: sites far apart, with a delay and a bandwidth for each ordered pair.
// SPDX-License-Identifier: Apache-2.0
//
// All messages from one site to another share one link. Where there is none, they go by other
// sites, on the way of least delay; a measured link is always used, even if a detour promises less.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "hardware/topologies/link.h"

namespace interlock {

struct Wan {
  int sites = 0;
  int nodes_per_site = 1;        // nodes of a site are numbered one after the other
  std::vector<LinkSpeed> links;  // [from * sites + to]; bandwidth 0: none. Diagonal: what the
                                 // nodes of a site share, beside their cards
  std::vector<int> next;         // [from * sites + to]: the site to go to first; -1: no way
};

/// Finds the ways between all sites: `links` becomes a Wan.
/// REQUIRES: links.size() == sites * sites.
Wan join_sites(int sites, std::vector<LinkSpeed> links);

/// The first pair of sites that cannot reach each other, if any.
std::optional<std::pair<int, int>> disconnected(const Wan& wan);

/// Adds the links between two nodes of different number, and their latency.
/// REQUIRES: not disconnected.
void cross(const Wan& wan, int from_node, int to_node, LinkId first, Route& route);
/// REQUIRES: `id` came from such a route whose `first` was 0.
Link link(const Wan& wan, LinkId id);

}  // namespace interlock
