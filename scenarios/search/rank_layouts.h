// Lets the ranks of the best plan divide their stages each in its own way.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "scenarios/search/plan_search.h"

namespace interlock {

/// Puts before the plans of `result` one whose ranks have tensor and data degrees of their own
/// ("parallel.stage_layouts"), if it takes less of what is minimised than the best, by more than
/// the difference that is worth having. Such plans are looked for where the modules between the
/// first and the last ones differ (an encoder, layers by a pattern), with as many devices a rank as
/// the best plan has, by a descent of looks. Calls `looked` before each.
void lay_ranks_apart(SearchResult& result, const std::function<void()>& looked);

}  // namespace interlock
