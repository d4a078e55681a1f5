// Cuts the best plan of a search anew.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "scenarios/search/plan_search.h"

namespace interlock {

/// Puts `found` before the plans of `result` if it is within the limits and takes less of what is
/// minimised than the best, by more than the difference that is worth having.
void take_if_better(FoundPlan found, SearchResult& result);

/// Puts before the plans of `result` one that differs from the best in its cut alone, searched by
/// simulated steps, if that is worth having. Rules look at one stage at a time; a rank of several
/// stages is as busy as all of them. Does nothing where each rank has one stage, or the request
/// names partitions. Calls `looked` before each estimate.
void cut_best_plan(SearchResult& result, const std::function<void()>& looked);

/// Changes the best plan where no rule of the space is good: ranks' layouts, and the cut.
void refine_best(SearchResult& result, const SearchProgress& told);

}  // namespace interlock
