// LinkLoad: for how long each link is busy with given flows.
// SPDX-License-Identifier: Apache-2.0
//
// Example: two flows of 1 MB over one link of 1 GB/s: it carries 2 MB and is busy for 2 ms.
#pragma once

#include <vector>

#include "hardware/collectives/collective.h"

namespace interlock {

struct LinkLoad {
  LinkId id = 0;
  Bytes carried;
  Seconds busy;  // at the link's full rate
};

/// Returns the links that the flows use, by number.
std::vector<LinkLoad> link_loads(const Cluster& cluster, const std::vector<Flow>& flows);

}  // namespace interlock
