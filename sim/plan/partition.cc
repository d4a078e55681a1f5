// Cutting a chain of modules into stages: evenly, or so that the busiest stage is least busy.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/partition.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace interlock {

Partition uniform_partition(int modules, int stages) {
  CHECK(1 <= stages && stages <= modules, "more stages than modules");
  Partition partition;
  for (int stage = 0; stage <= stages; ++stage) {
    const int longer = std::min(stage, modules % stages);
    partition.boundaries.push_back(stage * (modules / stages) + longer);
  }
  return partition;
}

// best[e] is the least possible busiest time of the first `stage` + 1 stages over modules [0, e).
// For a given end, a stage grows as its begin moves down, so the search stops as soon as the stage
// alone is busier than the best cut found.
Partition balanced_partition(int modules, int stages, const StageTime& time) {
  CHECK(1 <= stages && stages <= modules, "more stages than modules");
  const Seconds never(std::numeric_limits<double>::infinity());
  std::vector<Seconds> best(modules + 1, never);
  best[0] = Seconds(0);
  std::vector<std::vector<int>> cuts(stages, std::vector<int>(modules + 1, 0));
  for (int stage = 0; stage < stages; ++stage) {
    std::vector<Seconds> longer(modules + 1, never);
    const int stages_after = stages - 1 - stage;
    for (int end = stage + 1; end <= modules - stages_after; ++end) {
      if (stage == stages - 1 && end < modules) continue;
      for (int begin = end - 1; begin >= stage; --begin) {
        const Seconds alone = time(stage, begin, end);
        if (alone > longer[end]) break;
        const Seconds busiest = std::max(best[begin], alone);
        if (busiest <= longer[end]) {
          longer[end] = busiest;
          cuts[stage][end] = begin;
        }
        if (stage == 0 && begin == 0) break;
      }
    }
    best = std::move(longer);
  }
  Partition partition;
  partition.boundaries.assign(stages + 1, modules);
  for (int stage = stages - 1; stage >= 0; --stage) {
    partition.boundaries[stage] = cuts[stage][partition.boundaries[stage + 1]];
  }
  return partition;
}

}  // namespace interlock
