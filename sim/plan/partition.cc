// Cuts a chain of modules into stages: evenly, for least busy stages, or for the shortest waits.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/partition.h"

#include <algorithm>
#include <numeric>
#include <optional>
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

namespace {

/// The longest loop of a cut, or a limit on it, and the same of busy times.
struct Longest {
  Seconds loop, busy;
  Seconds of_both() const { return std::max(loop, busy); }
};

Longest longest_of(const Partition& cut, const StageTime& time, const StageLoops& loops) {
  const std::vector<int>& cuts = cut.boundaries;
  Longest longest;
  for (int stage = 0; stage < cut.stages(); ++stage) {
    longest.busy = std::max(longest.busy, time(stage, cuts[stage], cuts[stage + 1]));
    if (loops.tops[stage] == stage) continue;
    Seconds loop(0);
    for (int other = stage; other <= loops.tops[stage]; ++other) {
      loop += loops.time(stage, other, cuts[other], cuts[other + 1]);
    }
    longest.loop = std::max(longest.loop, loop);
  }
  return longest;
}

/// Searches cuts none of whose loops and busy times is longer than a limit. From stage to stage and
/// for each end of its modules it knows what the loops that go on above have taken so far, in every
/// way that no other way is better than in all of them.
class CutWithin {
 public:
  CutWithin(int modules, int stages, const StageTime& time, const StageLoops& loops)
      : modules_(modules), stages_(stages), time_(time), loops_(loops) {}

  /// Returns a cut within `limit`, if one was found.
  std::optional<Partition> find(const Longest& limit) {
    limit_ = limit;
    ways_.assign(static_cast<std::size_t>(stages_), {});
    for (int stage = 0; stage < stages_; ++stage) {
      ways_[stage].resize(static_cast<std::size_t>(modules_) + 1);
      add_stage(stage);
    }
    return traced();
  }

 private:
  static constexpr std::size_t kMostTaken = 128;  // times of loops that are kept for an end

  /// A way to cut the modules below some end.
  struct Way {
    std::vector<Seconds> open;  // of the loops that go on above, in the order of their stages
    int begin = 0;              // of the last stage
    std::size_t before = 0;     // the number of the way below that
  };

  /// Returns the stages below `stage` whose loops go through it.
  std::vector<int> through(int stage) const {
    std::vector<int> loops;
    for (int loop = 0; loop < stage; ++loop) {
      if (loops_.tops[loop] >= stage) loops.push_back(loop);
    }
    return loops;
  }

  void add_stage(int stage) {
    const std::vector<int> through_it = through(stage);
    const int latest = modules_ - (stages_ - 1 - stage);  // later stages need a module each
    const std::vector<Way> nothing = {Way()};
    for (int begin = stage; begin < latest; ++begin) {
      const std::vector<Way>& below = stage > 0 ? ways_[stage - 1][begin] : nothing;
      if (below.empty() || (stage == 0 && begin > 0)) continue;
      for (int end = stage == stages_ - 1 ? modules_ : begin + 1; end <= latest; ++end) {
        const bool loops = loops_.tops[stage] > stage;
        const Seconds own = loops ? loops_.time(stage, stage, begin, end) : Seconds(0);
        if (own > limit_.loop) break;
        if (time_(stage, begin, end) > limit_.busy) continue;
        std::vector<Seconds> added;
        for (const int loop : through_it) added.push_back(loops_.time(loop, stage, begin, end));
        for (std::size_t number = 0; number < below.size(); ++number) {
          Way way = {.open = {}, .begin = begin, .before = number};
          if (!go_on(below[number], through_it, added, stage, way.open)) continue;
          if (loops) way.open.push_back(own);
          keep(std::move(way), ways_[stage][end]);
        }
      }
    }
  }

  /// Notes in `open` what loops take that go on above `stage`. Returns false if one is too long.
  bool go_on(const Way& below, const std::vector<int>& through_it,
             const std::vector<Seconds>& added, int stage, std::vector<Seconds>& open) const {
    for (std::size_t i = 0; i < through_it.size(); ++i) {
      const Seconds taken = below.open[i] + added[i];
      if (taken > limit_.loop) return false;
      if (loops_.tops[through_it[i]] > stage) open.push_back(taken);
    }
    return true;
  }

  /// Keeps `way` unless one of `ways` is as good in all; drops those that it is as good as. Of too
  /// many those stay that have taken least in all.
  static void keep(Way way, std::vector<Way>& ways) {
    const auto as_good = [](const Way& a, const Way& b) {
      return std::equal(a.open.begin(), a.open.end(), b.open.begin(),
                        [](Seconds left, Seconds right) { return left <= right; });
    };
    for (const Way& known : ways) {
      if (as_good(known, way)) return;
    }
    std::erase_if(ways, [&](const Way& known) { return as_good(way, known); });
    ways.push_back(std::move(way));
    const std::size_t loops = std::max<std::size_t>(1, ways.back().open.size());
    if (ways.size() * loops <= std::max(kMostTaken, 4 * loops)) return;
    const auto taken = [](const Way& one) {
      return std::accumulate(one.open.begin(), one.open.end(), Seconds(0));
    };
    ways.erase(std::max_element(ways.begin(), ways.end(),
                                [&](const Way& a, const Way& b) { return taken(a) < taken(b); }));
  }

  std::optional<Partition> traced() const {
    if (ways_.back()[modules_].empty()) return std::nullopt;
    Partition cut;
    cut.boundaries.assign(static_cast<std::size_t>(stages_) + 1, modules_);
    std::size_t number = 0;
    for (int stage = stages_ - 1; stage >= 0; --stage) {
      const Way& way = ways_[stage][cut.boundaries[stage + 1]][number];
      cut.boundaries[stage] = way.begin;
      number = way.before;
    }
    return cut;
  }

  int modules_, stages_;
  const StageTime& time_;
  const StageLoops& loops_;
  Longest limit_;
  std::vector<std::vector<std::vector<Way>>> ways_;  // by stage and end
};

}  // namespace

Partition looped_partition(const Partition& start, const StageTime& time, const StageLoops& loops) {
  constexpr double kNearEnough = 1e-6;
  CutWithin search(start.boundaries.back(), start.stages(), time, loops);
  Partition best = start;
  Longest found = longest_of(start, time, loops);
  // Halves what lies between a limit that is too short and one that a cut keeps to.
  const auto shorten = [&](const auto& told, const auto& limits) {
    Seconds too_short(0);
    while (told() < Seconds(kInfinity) && too_short < told() * (1 - kNearEnough)) {
      const Seconds limit = (too_short + told()) / 2;
      if (const std::optional<Partition> cut = search.find(limits(limit))) {
        best = *cut;
        found = longest_of(best, time, loops);
      } else {
        too_short = limit;
      }
    }
  };
  shorten([&] { return found.of_both(); }, [](Seconds limit) { return Longest{limit, limit}; });
  const Seconds longest = found.of_both() * (1 + kNearEnough);
  shorten([&] { return found.busy; }, [=](Seconds limit) { return Longest{longest, limit}; });
  return best;
}

}  // namespace interlock
