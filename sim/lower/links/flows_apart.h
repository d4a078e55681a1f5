// Flows of a collective that nothing else meets, though others meet the rest of it.
// SPDX-License-Identifier: Apache-2.0
//
// Flows meet on links, directly or through others. Those of a collective fall into sets that do not
// meet each other. Where members send more and less, as in trees over three nodes and more, one
// flow cannot stand for all of a set; but a set that no other user meets takes the same time
// whatever happens elsewhere. So it is followed once, with every device, and becomes one flow.
// Flows of one size need no such care: by fair shares they end when their busiest link is done.
//
// Example: an all-reduce over three nodes of 8 devices beside tensor groups. Its chains within the
// nodes meet these on ports, and all chains are alike. Its trees between the nodes have the cards
// for themselves: one flow, which takes what they take.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "hardware/collectives/collective.h"
#include "sim/lower/links/known_flows.h"

namespace interlock {

/// Flows of a collective over links that stand for theirs.
struct FlowWays {
  std::vector<std::vector<LinkId>> ways;  // all that there are
  std::vector<int> of_flow;               // which it takes
};
/// Some of them, that meet no others of the collective.
struct FlowSet {
  std::vector<int> ways, flows;
  bool differ = false;  // in bytes
  bool uneven = false;  // in bytes, on one way
};
/// Returns the flows in sets that meet on links, directly or through others. Flows over no link are
/// in none. `plan`: the flows with their bytes.
std::vector<FlowSet> sets_that_meet(const FlowWays& flows, const std::vector<Flow>& plan);
/// Returns whether `is_so` holds for a link of the set.
bool any_link(const FlowWays& flows, const FlowSet& set, const std::function<bool(LinkId)>& is_so);

/// A flow over links of a cluster, and the group whose collective it belongs to.
struct GroupFlow {
  std::vector<LinkId> links;
  Bytes bytes;
  int group = 0;
};
/// Returns when the flows of each group end if all begin at once, alone on the cluster, and share
/// links max-min fairly.
std::vector<Seconds> ends_of_groups(const Cluster& cluster, const std::vector<GroupFlow>& flows);
/// Returns for each collective whether it uses a link that another group with the same part uses,
/// too, for any collective of its communicator. `orbits`: communicators and links of collectives.
std::vector<bool> meet_equals(const std::vector<std::pair<int, const LinkOrbit*>>& orbits);

}  // namespace interlock
