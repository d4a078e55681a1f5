// Cutting a chain of modules into stages: evenly, or so that the busiest stage is least busy.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/partition.h"

#include <algorithm>
#include <tuple>
#include <utility>

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

namespace {

/// The least possible busiest time of the stages so far over the first modules, by their number.
using BusiestTimes = std::vector<Seconds>;

/// The last of the stages so far: its number, the end of its modules, and up to where those before
/// it may hold modules.
struct LastStage {
  int stage, end, latest;
};

/// Returns the first module of the last of `stage` + 1 stages that hold the first `end` modules,
/// and the busiest time that this gives. For a given end the least time of a stage grows as its
/// first module moves down, so the search stops as soon as that is more than the best cut found.
std::pair<int, Seconds> best_begin(const BusiestTimes& before, const StageTime& time,
                                   const StageTime& least, const LastStage& last) {
  const auto [stage, end, latest] = last;
  std::pair<int, Seconds> best{stage, Seconds(kInfinity)};
  for (int begin = std::min(end - 1, latest); begin >= stage; --begin) {
    const Seconds alone = time(stage, begin, end);
    if ((least ? least(stage, begin, end) : alone) > best.second) break;
    const Seconds busiest = std::max(before[begin], alone);
    if (busiest <= best.second) best = {begin, busiest};
  }
  return best;
}

/// Returns the busiest time of a cut that is easily found: the best is no busier.
Seconds busiest_of_uniform(int modules, int stages, const StageTime& time) {
  const std::vector<int> cuts = uniform_partition(modules, stages).boundaries;
  Seconds busiest(0);
  for (int stage = 0; stage < stages; ++stage) {
    busiest = std::max(busiest, time(stage, cuts[stage], cuts[stage + 1]));
  }
  return busiest;
}

}  // namespace

// Dynamic programming over stages: the best cut of the first `end` modules into one stage more
// comes from the best cuts into the stages before, of which none is busier than a cut that is
// known.
Partition balanced_partition(int modules, int stages, const StageTime& time,
                             const StageTime& least) {
  CHECK(1 <= stages && stages <= modules, "more stages than modules");
  BusiestTimes busiest(modules + 1, Seconds(kInfinity));
  busiest[0] = Seconds(0);
  const Seconds most = busiest_of_uniform(modules, stages, time);
  std::vector<std::vector<int>> cuts(stages, std::vector<int>(modules + 1, 0));
  for (int stage = 0; stage < stages; ++stage) {
    BusiestTimes longer(modules + 1, Seconds(kInfinity));
    const int last = modules - (stages - 1 - stage);  // later stages need a module each
    const int first = stage == stages - 1 ? modules : stage + 1;
    int latest = last - 1;
    while (latest > stage && busiest[latest] > most) --latest;
    for (int end = first; end <= last; ++end) {
      std::tie(cuts[stage][end], longer[end]) =
          best_begin(busiest, time, least, {stage, end, latest});
    }
    busiest = std::move(longer);
  }
  Partition partition;
  partition.boundaries.assign(stages + 1, modules);
  for (int stage = stages - 1; stage >= 0; --stage) {
    partition.boundaries[stage] = cuts[stage][partition.boundaries[stage + 1]];
  }
  return partition;
}

}  // namespace interlock
