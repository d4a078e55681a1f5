// Wide-area network: sites far apart, with a delay and a bandwidth for each ordered pair.
// SPDX-License-Identifier: Apache-2.0
//
// All messages from one site to another share one link. Where there is none, they go by other
// sites, on the way of least delay; a measured link is always used, even if a detour promises less.
//
// Example: sites 0 and 1 are 10 ms and 1 GB/s apart, 1 and 2 are 20 ms and 2 GB/s. Site 0 has no
// link to 2, so `next` from 0 to 2 is 1, and a message takes 30 ms at 1 GB/s.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "hardware/topologies/link.h"

namespace interlock {

struct Wan {
  int sites = 0;
  std::vector<int> nodes;        // of each site, as a document says; empty: as many at each
  std::vector<int> site_of;      // (nodes of all sites)
  std::vector<LinkSpeed> links;  // [from * sites + to]; bandwidth 0: none. Diagonal: what the
                                 // nodes of a site share, beside their cards
  std::vector<int> next;         // [from * sites + to]: the site to go to first; -1: no way
};

/// Finds the ways between all sites: `links` becomes a Wan with a node at each of them.
/// REQUIRES: links.size() == sites * sites.
Wan join_sites(int sites, std::vector<LinkSpeed> links);

/// Lays as many nodes on each site as `nodes` says, one site after the other.
void lay_nodes(Wan& wan, const std::vector<int>& nodes);

/// Returns the first pair of sites that cannot reach each other, if any.
std::optional<std::pair<int, int>> disconnected(const Wan& wan);

/// Adds the links between two nodes of different number, and their latency.
/// REQUIRES: not disconnected.
void cross(const Wan& wan, int from_node, int to_node, LinkId first, Route& route);
/// REQUIRES: `id` came from such a route whose `first` was 0.
Link link(const Wan& wan, LinkId id);

}  // namespace interlock
