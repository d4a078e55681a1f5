// Cutting chains into stages, compared with trying every cut.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/partition.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "base/random.h"

namespace interlock::partition_test {
namespace {

/// Visits every way to cut `modules` into `stages`.
void for_partitions(int modules, int stages, const std::function<void(const Partition&)>& visit) {
  Partition partition{{0}};
  const std::function<void()> extend = [&] {
    const int cuts = static_cast<int>(partition.boundaries.size()) - 1;
    if (cuts == stages - 1) {
      partition.boundaries.push_back(modules);
      visit(partition);
      partition.boundaries.pop_back();
      return;
    }
    const int least = partition.boundaries.back() + 1;
    for (int cut = least; cut <= modules - (stages - 1 - cuts); ++cut) {
      partition.boundaries.push_back(cut);
      extend();
      partition.boundaries.pop_back();
    }
  };
  extend();
}

Seconds busiest(const Partition& partition, const StageTime& time) {
  Seconds most(0);
  for (int s = 0; s < partition.stages(); ++s) {
    most = std::max(most, time(s, partition.boundaries[s], partition.boundaries[s + 1]));
  }
  return most;
}

/// The least busiest time, and of the cuts that have it the earliest last one.
struct Best {
  Seconds time{std::numeric_limits<double>::infinity()};
  int last_cut = 0;
};
Best brute_force(int modules, int stages, const StageTime& time) {
  Best best;
  for_partitions(modules, stages, [&](const Partition& partition) {
    const Seconds most = busiest(partition, time);
    const int last_cut = partition.boundaries[stages - 1];
    if (most < best.time) best = {most, last_cut};
    if (most == best.time) best.last_cut = std::min(best.last_cut, last_cut);
  });
  return best;
}

/// A chain whose stages take the sum of their modules, more where a gradient passes through, and
/// the head of their last module: not additive, because longer stages need not be slower.
struct RandomTimes {
  std::vector<double> module, head;
  std::vector<int> traversals;  // by stage
  int stages = 1;

  RandomTimes(Random& random, int modules, int stage_count) : stages(stage_count) {
    const bool whole = random.integer(0, 1) == 0;  // ties abound
    const auto draw = [&](int most) {
      return whole ? random.integer(0, most) : most * random.uniform();
    };
    for (int m = 0; m < modules; ++m) {
      module.push_back(draw(4));
      head.push_back(draw(5));
    }
    for (int s = 0; s < stages; ++s) traversals.push_back(random.integer(1, 3));
  }
  StageTime time() const {
    return [this](int stage, int first, int last) {
      double sum = 0;
      for (int m = first; m < last; ++m) sum += module[m] * traversals[stage];
      return Seconds(sum + (stage < stages - 1 ? head[last - 1] : 0));
    };
  }
};

void for_random_chains(
    const std::function<void(int modules, int stages, const StageTime&)>& visit) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Random random(61, seed);
    const int modules = random.integer(1, 9), stages = random.integer(1, modules);
    const RandomTimes times(random, modules, stages);
    INFO("seed " << seed << ": " << modules << " modules, " << stages << " stages");
    visit(modules, stages, times.time());
  }
}

TEST_CASE("a balanced partition is as good as the best of all cuts, heads included") {
  for_random_chains([](int modules, int stages, const StageTime& time) {
    const Partition partition = balanced_partition(modules, stages, time);
    CHECK(busiest(partition, time) == brute_force(modules, stages, time).time);
  });
}

TEST_CASE("a balanced partition has every module once and no empty stage") {
  for_random_chains([](int modules, int stages, const StageTime& time) {
    const Partition partition = balanced_partition(modules, stages, time);
    REQUIRE(partition.stages() == stages);
    CHECK(partition.boundaries.front() == 0);
    CHECK(partition.boundaries.back() == modules);
    for (int s = 0; s < stages; ++s) CHECK(partition.boundaries[s] < partition.boundaries[s + 1]);
  });
}

TEST_CASE("among equal optima the last cut is the earliest, and what is before it is balanced") {
  for_random_chains([](int modules, int stages, const StageTime& time) {
    const Partition partition = balanced_partition(modules, stages, time);
    const int last_cut = partition.boundaries[stages - 1];
    CHECK(last_cut == brute_force(modules, stages, time).last_cut);
    if (stages == 1) return;
    Partition before = partition;
    before.boundaries.pop_back();
    CHECK(before.boundaries == balanced_partition(last_cut, stages - 1, time).boundaries);
  });
}

TEST_CASE("ties put the longer stages last") {
  const StageTime count = [](int, int first, int last) { return Seconds(last - first); };
  CHECK(balanced_partition(5, 2, count).boundaries == std::vector<int>{0, 2, 5});
  CHECK(balanced_partition(7, 3, count).boundaries == std::vector<int>{0, 2, 4, 7});
}

TEST_CASE("a slow head moves the cut away from its module") {
  // Modules of 1 s; the head of module 2 takes 5 s, the others none. Cut in the middle, the first
  // stage would take 2 + 5 s; cut after one or three modules, the larger stage takes 3 s.
  const StageTime time = [](int stage, int first, int last) {
    return Seconds(last - first + (stage == 0 && last == 2 ? 5 : 0));
  };
  CHECK(balanced_partition(4, 2, time).boundaries == std::vector<int>{0, 1, 4});
}

/// Loops of random stages: each waits for a loss of some stage above, or for its own. What a stage
/// adds to one grows with its modules, but for the head of the loss.
struct RandomLoops {
  RandomTimes times;
  std::vector<double> message;
  StageLoops loops;

  RandomLoops(Random& random, int modules, int stages) : times(random, modules, stages) {
    for (int m = 0; m < modules; ++m) message.push_back(random.integer(0, 6));
    for (int s = 0; s < stages; ++s) loops.tops.push_back(random.integer(s, stages - 1));
    loops.time = [this](int loop, int stage, int first, int last) {
      double sum = stage > loop ? message[first] : 0;
      for (int m = first; m < last; ++m) sum += times.module[m] * (stage == loop ? 3 : 2);
      return Seconds(sum + (stage == loops.tops[loop] ? times.head[last - 1] : 0));
    };
  }
  Seconds longest(const Partition& cut) const {
    Seconds most = busiest(cut, times.time());
    for (int loop = 0; loop < cut.stages(); ++loop) {
      if (loops.tops[loop] == loop) continue;
      Seconds sum(0);
      for (int s = loop; s <= loops.tops[loop]; ++s) {
        sum += loops.time(loop, s, cut.boundaries[s], cut.boundaries[s + 1]);
      }
      most = std::max(most, sum);
    }
    return most;
  }
};

TEST_CASE("no cut has a shorter longest loop than the looped partition, for any waits") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Random random(67, seed);
    const int modules = random.integer(1, 10), stages = random.integer(1, modules);
    const RandomLoops drawn(random, modules, stages);
    Seconds best(std::numeric_limits<double>::infinity());
    for_partitions(modules, stages,
                   [&](const Partition& cut) { best = std::min(best, drawn.longest(cut)); });
    const Partition found =
        looped_partition(uniform_partition(modules, stages), drawn.times.time(), drawn.loops);
    INFO("seed " << seed << ": " << modules << " modules, " << stages << " stages, best "
                 << best.value() << " s");
    REQUIRE(found.stages() == stages);
    CHECK(drawn.longest(found) <= best * (1 + 2e-6));
  }
}

TEST_CASE("uniform stages differ by one module at most, the longer ones first") {
  for (int modules = 1; modules <= 20; ++modules) {
    for (int stages = 1; stages <= modules; ++stages) {
      const Partition partition = uniform_partition(modules, stages);
      REQUIRE(partition.stages() == stages);
      CHECK(partition.boundaries.front() == 0);
      CHECK(partition.boundaries.back() == modules);
      for (int s = 0; s < stages; ++s) {
        const int length = partition.boundaries[s + 1] - partition.boundaries[s];
        CHECK(length == modules / stages + (s < modules % stages ? 1 : 0));
      }
    }
  }
}

}  // namespace
}  // namespace interlock::partition_test
