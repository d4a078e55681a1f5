// OffloadSearch: plans that keep states and stash with hosts, beside those that do not.
// SPDX-License-Identifier: Apache-2.0
//
// A plan that has room gains nothing from the memory of hosts: it only waits for copies. So offload
// is searched for those layouts alone that lacked memory without it, once the best plan without is
// known, which the best with it has to beat.
#pragma once

#include <vector>

#include "scenarios/search/plan_search.h"

namespace interlock {

/// Returns the ways to offload that a search tries by itself: none or all of the optimiser's
/// states, and none, half or all of the stash.
std::vector<JsonValue> usual_offloads();

/// Takes what was found `with` offload into `result`, found without: the best plan, if it beats the
/// one that was found by `worth` or there was none, and all counts.
void join_offload(SearchResult with, SearchResult& result);

}  // namespace interlock
