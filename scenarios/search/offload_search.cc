// Joins searches without and with offload.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/search/offload_search.h"

#include <utility>

#include "scenarios/search/best_cut.h"

namespace interlock {
std::vector<JsonValue> usual_offloads() {
  std::vector<JsonValue> values;
  for (const double optimizer : {0.0, 1.0}) {
    for (const double activations : {0.0, 0.5, 1.0}) {
      if (optimizer + activations == 0) continue;
      values.push_back(json_object(
          {{"activations", json_number(activations)}, {"optimizer", json_number(optimizer)}}));
    }
  }
  return values;
}

void join_offload(SearchResult with, SearchResult& result) {
  result.counts += with.counts;
  result.stopped = result.stopped || with.stopped;
  result.cut_off = result.cut_off || with.cut_off;
  if (result.plans.empty()) {
    result.plans = std::move(with.plans);
  } else if (!with.plans.empty()) {
    FoundPlan& best = with.plans.front();
    const bool large = best.estimate.too_large && !result.plans.front().estimate.too_large;
    if (large) {
      ++result.counts.large_better;
    } else if (best.simulated) {
      take_if_better(std::move(best), result);
    }
  }
  const auto memory = [](const FoundPlan& plan) { return plan.estimate.values[1]; };
  const bool closer =
      !with.closest.empty() &&
      (result.closest.empty() || memory(with.closest.front()) < memory(result.closest.front()));
  if (closer) result.closest = std::move(with.closest);
}

}  // namespace interlock
