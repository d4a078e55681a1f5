// SearchFront: the plans that a search found, as points over what they take.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reports/charts/line_chart.h"
#include "scenarios/search/plan_search.h"

namespace interlock {

/// Returns a panel of step time over memory of the fullest device. Plan i leads to section i; pale
/// is what a plan before it beats in all that counts. REQUIRES: plans were found.
LineChart search_front(const SearchResult& result);

}  // namespace interlock
