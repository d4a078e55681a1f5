// Counts of a search, and the limits that plans were lost to.
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "base/error.h"
#include "scenarios/search/plan_search.h"

namespace interlock {

std::optional<Loss> limit_met(const PlanLimits& limits, const PlanEstimate& known, Grade grade) {
  const auto at = [&](Aim aim) { return known.values[static_cast<std::size_t>(aim)]; };
  if (limits.memory && at(Aim::Memory) > limits.memory->value()) return Loss::Memory;
  if (!limits.memory && known.memory_share > known.usable_share) return Loss::Memory;
  if (limits.time && at(Aim::Time) > limits.time->value()) return Loss::Time;
  if (limits.cost && at(Aim::Cost) > *limits.cost) return Loss::Cost;
  if (grade != Grade::Simulation) return std::nullopt;
  if (limits.power && known.power > limits.power->value()) return Loss::Power;
  if (!known.fits && known.memory_share <= 1) return Loss::HostMemory;
  return std::nullopt;
}

std::size_t lost(const SearchCounts& counts, Loss loss) {
  std::size_t plans = 0;
  for (const auto& grade : counts.lost) plans += grade[static_cast<std::size_t>(loss)];
  return plans;
}

void refuse_empty(const SearchCounts& counts, int batch) {
  if (counts.layouts == 0) {
    throw Error(
        "no plan is possible: no layout of the devices has replicas among which the batch of " +
        std::to_string(batch) +
        " samples divides; expected another batch, other devices, or values of \"search\" that fit "
        "each other: tensor x pipeline x context x data = devices");
  }
  if (counts.refused < counts.plans) return;
  throw NoPlanPossible(
      "no plan of the " + std::to_string(counts.plans) + " that were tried is possible" +
          (counts.refusal.empty() ? "; expected values of \"search\" that fit each other"
                                  : "; the first: " + counts.refusal),
      counts.plans, counts.refusal);
}

SearchCounts& operator+=(SearchCounts& counts, const SearchCounts& more) {
  for (std::size_t SearchCounts::*const count :
       {&SearchCounts::layouts, &SearchCounts::plans, &SearchCounts::refused,
        &SearchCounts::useless, &SearchCounts::bounded_layouts, &SearchCounts::bounded,
        &SearchCounts::looked_at, &SearchCounts::judged, &SearchCounts::shortened,
        &SearchCounts::too_large, &SearchCounts::left, &SearchCounts::left_better,
        &SearchCounts::large_better, &SearchCounts::waiting, &SearchCounts::waiting_better,
        &SearchCounts::cut_anew, &SearchCounts::unfinished}) {
    counts.*count += more.*count;
  }
  for (std::size_t grade = 0; grade < more.lost.size(); ++grade) {
    for (std::size_t loss = 0; loss < kLosses; ++loss) {
      counts.lost[grade][loss] += more.lost[grade][loss];
    }
  }
  if (counts.refusal.empty()) counts.refusal = more.refusal;
  if (counts.useless_because.empty()) counts.useless_because = more.useless_because;
  if (counts.failure.empty()) counts.failure = more.failure;
  return counts;
}

}  // namespace interlock
