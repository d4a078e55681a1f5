// Adds up flows on the links of their routes.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/collectives/link_load.h"

#include <algorithm>

namespace interlock {

std::vector<LinkLoad> link_loads(const Cluster& cluster, const std::vector<Flow>& flows) {
  std::vector<LinkLoad> loads;
  loads.reserve(2 * flows.size());
  Route way;
  for (const Flow& flow : flows) {
    route(cluster, flow.from, flow.to, way);
    for (const LinkId id : way.links) {
      loads.push_back({id, flow.bytes, {}});
    }
  }
  // Stable, so that sums are made in the order of the flows everywhere.
  std::stable_sort(loads.begin(), loads.end(),
                   [](const LinkLoad& a, const LinkLoad& b) { return a.id < b.id; });
  std::size_t kept = 0;
  for (const LinkLoad& load : loads) {
    if (kept > 0 && loads[kept - 1].id == load.id) {
      loads[kept - 1].carried += load.carried;
    } else {
      loads[kept++] = load;
    }
  }
  loads.resize(kept);
  for (LinkLoad& load : loads) load.busy = load.carried / bandwidth_of(cluster, load.id);
  return loads;
}

}  // namespace interlock
