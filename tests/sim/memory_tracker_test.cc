// Memory over time against sorting the whole trace.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "sim/measure/memory.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::memory_tracker_test {
namespace {

double in_blocks(double bytes) {
  const double block = MemoryTracker::kBlock;
  return bytes < 0 ? -in_blocks(-bytes) : std::ceil(bytes / block) * block;
}

/// The peaks of one rank, by sorting its changes and adding them up instant by instant.
MemoryPeak brute_force(const Rank& rank, std::vector<MemoryChange> changes) {
  std::stable_sort(changes.begin(), changes.end(),
                   [](const MemoryChange& a, const MemoryChange& b) { return a.time < b.time; });
  std::array<double, kMemoryClasses> bytes{};
  double allocated = 0;
  for (int c = 0; c < kMemoryClasses; ++c) {
    bytes[c] = rank.resident[c].value();
    allocated += in_blocks(bytes[c]);
  }
  MemoryPeak peak;
  const auto look = [&](Seconds time) {
    const double total = std::accumulate(bytes.begin(), bytes.end(), 0.0);
    const double stash = bytes[static_cast<int>(MemoryClass::Stash)];
    peak.stash = std::max(peak.stash, Bytes(stash));
    peak.allocated = std::max(peak.allocated, Bytes(allocated));
    if (Bytes(total) <= peak.total) return;
    peak.total = Bytes(total);
    peak.time = time;
    for (int c = 0; c < kMemoryClasses; ++c) peak.at_peak[c] = Bytes(bytes[c]);
  };
  look(Seconds(0));
  for (std::size_t i = 0; i < changes.size(); ++i) {
    bytes[static_cast<int>(changes[i].memory_class)] += changes[i].bytes;
    allocated += in_blocks(changes[i].bytes);
    const bool instant_ends = i + 1 == changes.size() || changes[i + 1].time > changes[i].time;
    if (instant_ends) look(changes[i].time);
  }
  return peak;
}

void check_peaks(const Program& program, const std::vector<MemoryChange>& changes,
                 const std::vector<MemoryPeak>& peaks) {
  REQUIRE(peaks.size() == program.ranks.size());
  for (std::size_t r = 0; r < peaks.size(); ++r) {
    std::vector<MemoryChange> of_rank;
    std::copy_if(changes.begin(), changes.end(), std::back_inserter(of_rank),
                 [&](const MemoryChange& c) { return c.rank == static_cast<int>(r); });
    const MemoryPeak expected = brute_force(program.ranks[r], of_rank);
    INFO("rank " << r);
    CHECK(peaks[r].total.value() == expected.total.value());
    CHECK(peaks[r].stash.value() == expected.stash.value());
    CHECK(peaks[r].allocated.value() == expected.allocated.value());
    CHECK(peaks[r].time.value() == expected.time.value());
    CHECK(peaks[r].at_peak == expected.at_peak);
  }
}

/// The news of a rank, in its own order: that it begins an op, or a change.
struct Told {
  bool begins = false;
  MemoryChange change;  // or, if it begins an op, its time
};

MemoryClass random_class(Random& random) {
  return static_cast<MemoryClass>(random.integer(0, kMemoryClasses - 1));
}

/// A rank whose time goes on; it takes and gives back on itself, now or later, and on ranks that it
/// sends to, now.
std::vector<Told> random_telling(Random& random, const Program& program, int rank) {
  std::vector<int> receivers{rank};
  for (const Channel& channel : program.channels) {
    if (channel.from_rank == rank) receivers.push_back(channel.to_rank);
  }
  std::vector<Told> told;
  double now = 0;
  for (int i = 0; i < 400; ++i) {
    now += random.integer(0, 2);
    if (random.integer(0, 3) == 0) {
      told.push_back({true, {.time = Seconds(now), .rank = rank}});
      continue;
    }
    const int to = receivers[random.integer(0, static_cast<int>(receivers.size()) - 1)];
    const int later = to == rank ? random.integer(0, 1) * random.integer(0, 40) : 0;
    told.push_back({false,
                    {.time = Seconds(now + later),
                     .bytes = static_cast<double>(random.integer(-2000, 2100)),
                     .rank = to,
                     .memory_class = random_class(random)}});
  }
  return told;
}

Program random_ranks(Random& random) {
  Program program;
  const int ranks = random.integer(1, 4);
  program.ranks.resize(ranks);
  for (Rank& rank : program.ranks) {
    for (Bytes& bytes : rank.resident) bytes = Bytes(random.integer(0, 5000));
  }
  const int channels = random.integer(0, 2 * ranks);
  for (int c = 0; c < channels; ++c) {
    program.channels.push_back(
        {.from_rank = random.integer(0, ranks - 1), .to_rank = random.integer(0, ranks - 1)});
  }
  return program;
}

TEST_CASE("peaks are those of the sorted trace, however ranks are shuffled among each other") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(141, seed);
    const Program program = random_ranks(random);
    const int ranks = static_cast<int>(program.ranks.size());
    std::vector<std::vector<Told>> told(ranks);
    for (int r = 0; r < ranks; ++r) told[r] = random_telling(random, program, r);
    MemoryTracker tracker(program);
    std::vector<MemoryChange> changes;
    std::vector<std::size_t> at(ranks, 0);
    // Now one rank runs ahead, now another.
    for (int left = ranks; left > 0;) {
      const int r = random.integer(0, ranks - 1);
      for (int i = random.integer(1, 60); i > 0 && at[r] < told[r].size(); --i) {
        const Told& next = told[r][at[r]++];
        if (next.begins) {
          tracker.pass(r, next.change.time);
        } else {
          tracker.add(next.change);
          changes.push_back(next.change);
        }
        left -= at[r] == told[r].size() ? 1 : 0;
      }
    }
    INFO("seed " << seed);
    check_peaks(program, changes, tracker.finish());
  }
}

/// A random chain of whole bytes, long enough that a tracker settles on the way.
TestChain random_heavy_chain(Random& random, bool chooses) {
  TestChain chain = chooses ? random_choosing_chain(random) : random_chain(random);
  chain.steps *= 4;
  const auto round = [](Bytes& bytes) { bytes = Bytes(std::floor(bytes.value())); };
  for (StageCost& cost : chain.costs) {
    for (Bytes* bytes : {&cost.output, &cost.returned, &cost.stash, &cost.workspace,
                         &cost.head_memory, &cost.readout, &cost.state.gradients}) {
      round(*bytes);
    }
    cost.state.weights = Bytes(random.integer(0, 9999));
    cost.state.optimizer = Bytes(random.integer(0, 9999));
  }
  return chain;
}

using Run = std::function<void(const Program&, const TraceSink&)>;

/// Feeds a tracker as the trace comes, and compares; nothing if the run deadlocks.
void check_run(const Program& program, const Run& run) {
  MemoryTracker tracker(program);
  std::vector<MemoryChange> changes;
  const TraceSink sink{.span = [&](const Span& s) { tracker.pass(s.rank, s.start); },
                       .memory =
                           [&](const MemoryChange& change) {
                             tracker.add(change);
                             changes.push_back(change);
                           }};
  try {
    run(program, sink);
  } catch (const Error&) {
    return;
  }
  check_peaks(program, changes, tracker.finish());
}

TEST_CASE("peaks are those of the sorted trace when a sweep runs ahead on each rank") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(142, seed);
    const TestChain chain = random_heavy_chain(random, false);
    const Program program = program_of(chain);
    INFO("seed " << seed << ": " << describe(chain));
    if (!chooses_order(program)) check_run(program, run_longest_path);
  }
}

TEST_CASE("peaks are those of the sorted trace when ranks run in order of time") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(143, seed);
    const TestChain chain = random_heavy_chain(random, seed % 2 == 0);
    const Program program = program_of(chain);
    INFO("seed " << seed << ": " << describe(chain));
    check_run(program, run_event_loop);
    if (seed % 5 == 0) {
      check_run(program, [](const Program& p, const TraceSink& sink) {
        run_program(p, EngineKind::SimGrid, sink);
      });
    }
  }
}

TEST_CASE("bytes that change hands within an instant make no peak") {
  Program program{.ranks = {Rank{}}};
  MemoryTracker tracker(program);
  const auto change = [&](double time, double bytes, MemoryClass memory_class) {
    tracker.add({Seconds(time), bytes, 0, memory_class});
  };
  change(1, 1000, MemoryClass::Boundary);
  change(3, 1000, MemoryClass::Stash);
  change(3, -1000, MemoryClass::Boundary);
  change(5, -1000, MemoryClass::Stash);
  const MemoryPeak peak = tracker.finish()[0];
  CHECK(peak.total == Bytes(1000));
  CHECK(peak.time == Seconds(1));
  CHECK(peak.at_peak[static_cast<int>(MemoryClass::Boundary)] == Bytes(1000));
  CHECK(peak.stash == Bytes(1000));
  CHECK(peak.allocated == Bytes(1024));  // four blocks of 256
}

TEST_CASE("a rank that holds nothing but its resident bytes peaks with them at 0") {
  Program program{.ranks = {Rank{}}};
  program.ranks[0].resident[static_cast<int>(MemoryClass::Weights)] = Bytes(300);
  program.ranks[0].resident[static_cast<int>(MemoryClass::Optimizer)] = Bytes(256);
  const MemoryPeak peak = MemoryTracker(program).finish()[0];
  CHECK(peak.total == Bytes(556));
  CHECK(peak.allocated == Bytes(512 + 256));
  CHECK(peak.time == Seconds(0));
}

}  // namespace
}  // namespace interlock::memory_tracker_test
