// TeraPipe: the order of slices, its closed form, and GPipe wherever slices are micro-batches.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include "base/random.h"
#include "sim/engines/generations.h"
#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::terapipe_test {
namespace {

/// A chain of stages whose costs differ from slice to slice.
struct SlicedChain {
  std::vector<std::vector<ChainStage>> slices;  // (slices, stages)
  int micro_batches = 1;
  std::vector<int> parts = {};  // slices of each micro-batch, where they differ
  int steps = 1;
  bool split = false;
  Seconds latency;

  int stages() const { return static_cast<int>(slices.front().size()); }
};

Schedule schedule_of(const SlicedChain& chain, const TestChain& one) {
  const int slices = static_cast<int>(chain.slices.size());
  return make_schedule({.stages = chain.stages(),
                        .slices = slices,
                        .micro_batches = chain.micro_batches * slices,
                        .slice_counts = chain.parts,
                        .steps = chain.steps,
                        .rank_of_stage = one.rank_of_stage,
                        .roles = roles_of(one),
                        .policy = one.policy});
}

Program program_of(const SlicedChain& chain) {
  TestChain one = make_chain(chain.slices.front(), "terapipe");
  one.policy.split_backward = chain.split;
  LowerInputs inputs{.schedule = schedule_of(chain, one),
                     .policy = one.policy,
                     .roles = roles_of(one),
                     .cluster = one.cluster};
  inputs.cluster.machines.front().port_latency = chain.latency;
  inputs.policy.update_every = inputs.schedule.micro_batches;
  for (const std::vector<ChainStage>& slice : chain.slices) {
    const TestChain costs = make_chain(slice, "terapipe");
    inputs.stages.insert(inputs.stages.end(), costs.costs.begin(), costs.costs.end());
  }
  return lower(inputs);
}

/// Returns the work as GPipe does it: each of `slices` equal slices is a micro-batch.
Program gpipe_of(const SlicedChain& chain) {
  TestChain one = make_chain(chain.slices.front(), "gpipe");
  one.policy.split_backward = chain.split;
  one.micro_batches = chain.micro_batches * static_cast<int>(chain.slices.size());
  one.steps = chain.steps;
  one.cluster.machines.front().port_latency = chain.latency;
  return program_of(one);
}

double makespan(const Program& program) {
  return realise(program, run_native).summary.makespan.value();
}

ChainStage random_stage(Random& random) {
  return {.forward = random.uniform(),
          .backward_input = random.uniform(),
          .backward_weight = random.uniform(),
          .update = random.uniform(),
          .output = 200 * random.uniform(),
          .stash = 1000 * random.uniform()};
}

std::vector<std::vector<ChainStage>> random_slices(Random& random, int slices, int stages) {
  std::vector<std::vector<ChainStage>> made(slices);
  for (auto& slice : made) {
    for (int stage = 0; stage < stages; ++stage) slice.push_back(random_stage(random));
  }
  return made;
}

TEST_CASE("slices go forward in the order of the sequence and backward in reverse") {
  const SlicedChain chain{
      .slices = std::vector<std::vector<ChainStage>>(3, std::vector<ChainStage>(2)),
      .micro_batches = 2};
  const TestChain one = make_chain(2, "terapipe");
  // Micro-batch 0 is slices 0 to 2, micro-batch 1 slices 3 to 5.
  CHECK(to_text(schedule_of(chain, one)) ==
        "0F0 0F1 0F2 0F3 0F4 0F5 0B2 0B1 0B0 0B5 0B4 0B3 0U5\n"
        "1F0 1F1 1F2 1F3 1F4 1F5 1B2 1B1 1B0 1B5 1B4 1B3 1U5\n");
}

TEST_CASE("micro-batches of several sizes go back one by one, each with its slices in reverse") {
  const SlicedChain chain{
      .slices = std::vector<std::vector<ChainStage>>(4, std::vector<ChainStage>(2)),
      .parts = {3, 1},
      .steps = 2};
  CHECK(to_text(schedule_of(chain, make_chain(2, "terapipe"))) ==
        "0F0 0F1 0F2 0F3 0B2 0B1 0B0 0B3 0U3 0F4 0F5 0F6 0F7 0B6 0B5 0B4 0B7 0U7\n"
        "1F0 1F1 1F2 1F3 1B2 1B1 1B0 1B3 1U3 1F4 1F5 1F6 1F7 1B6 1B5 1B4 1B7 1U7\n");
}

/// 1 to 4 micro-batches of 1 to 3 slices each.
std::vector<int> random_parts(Random& random) {
  std::vector<int> parts(random.integer(1, 4));
  for (int& slices : parts) slices = random.integer(1, 3);
  return parts;
}

TEST_CASE("steps of several sizes take sum (f + b) + (K - 1)(max f + max b) + o") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(178, seed);
    const int stages = random.integer(1, 6);
    SlicedChain chain{.parts = random_parts(random)};
    // A flow shop again: in whatever order the slices come.
    double sum = 0, longest_forward = 0, longest_backward = 0;
    for (int i = std::accumulate(chain.parts.begin(), chain.parts.end(), 0); i > 0; --i) {
      ChainStage stage = random_stage(random);
      stage.output = 0;
      stage.update = 0.25;
      const double backward = stage.backward_input + stage.backward_weight;
      sum += stage.forward + backward;
      longest_forward = std::max(longest_forward, stage.forward);
      longest_backward = std::max(longest_backward, backward);
      chain.slices.push_back(std::vector<ChainStage>(stages, stage));
    }
    const double expected = sum + (stages - 1) * (longest_forward + longest_backward) + 0.25;
    const double simulated = makespan(program_of(chain));
    INFO("K " << stages << ", " << chain.parts.size() << " micro-batches, " << chain.slices.size()
              << " slices: " << expected << " s expected, " << simulated << " s simulated");
    CHECK(simulated == doctest::Approx(expected).epsilon(1e-12));
  }
}

TEST_CASE("several sizes keep and send what their slices do, and count as the user's") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Random random(179, seed);
    SlicedChain chain{.parts = random_parts(random)};
    const int units = std::accumulate(chain.parts.begin(), chain.parts.end(), 0);
    chain.slices = random_slices(random, units, 3);
    const ProgramOfSteps program = [&](int steps, double) {
      chain.steps = steps;
      return program_of(chain);
    };
    const Metrics metrics = measure(program, {.steps = 3}, false).metrics;
    const auto parts = static_cast<std::int64_t>(chain.parts.size());
    CHECK(metrics.staleness == std::map<int, std::int64_t>{{0, 3 * parts}});
    for (int stage = 0; stage < 3; ++stage) {
      double stash = 0, sent = 0;
      for (const auto& slice : chain.slices) stash += slice[stage].stash;
      for (const auto& slice : chain.slices) sent += slice[stage].output;
      INFO("seed " << seed << ", stage " << stage << ": slices keep " << stash << " B");
      CHECK(metrics.devices[stage].peak_stash.value() == doctest::Approx(stash));
      if (stage == 2) continue;
      for (const auto& link : metrics.links) {
        const std::string up = std::to_string(stage) + "->" + std::to_string(stage + 1);
        if (link.name == up) CHECK(link.bytes.value() == doctest::Approx(sent));
      }
    }
    // Numbers as a reader counts: slices of each micro-batch, then the next one, step after step.
    const Program two = program(2, 0);
    int unit = 0, number = 0;
    for (int step = 0; step < 2; ++step) {
      for (const int slices : chain.parts) {
        for (int slice = 0; slice < slices; ++slice, ++unit) {
          CHECK(slice_number(two, unit).micro_batch == number);
          CHECK(slice_number(two, unit).slice == slice);
        }
        ++number;
      }
    }
  }
}

TEST_CASE("equal stages take M sum (f + b) + (K - 1)(max f + max b) + o") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(72, seed);
    const int stages = random.integer(1, 6), slices = random.integer(1, 5);
    SlicedChain chain{.micro_batches = random.integer(1, 4)};
    // In a flow shop whose jobs take the same time on each of K machines, the longest path goes
    // through every job once and through the longest job on all other machines. The last stage
    // goes back at once; in half the cases b is twice f, where the sum is that of the paper.
    double sum = 0, longest_forward = 0, longest_backward = 0;
    for (int i = 0; i < slices; ++i) {
      ChainStage stage = random_stage(random);
      stage.output = 0;
      stage.update = 0.25;
      if (seed % 2 == 0) stage.backward_input = stage.backward_weight = stage.forward;
      const double backward = stage.backward_input + stage.backward_weight;
      sum += stage.forward + backward;
      longest_forward = std::max(longest_forward, stage.forward);
      longest_backward = std::max(longest_backward, backward);
      chain.slices.push_back(std::vector<ChainStage>(stages, stage));
    }
    const double expected =
        chain.micro_batches * sum + (stages - 1) * (longest_forward + longest_backward) + 0.25;
    const double simulated = makespan(program_of(chain));
    INFO("K " << stages << ", M " << chain.micro_batches << ", " << slices
              << " slices: " << expected << " s expected, " << simulated << " s simulated");
    CHECK(simulated == doctest::Approx(expected).epsilon(1e-12));
  }
}

TEST_CASE("one slice is GPipe, op for op and byte for byte") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(73, seed);
    const SlicedChain chain{.slices = random_slices(random, 1, random.integer(1, 5)),
                            .micro_batches = random.integer(1, 5),
                            .steps = random.integer(1, 3),
                            .split = random.integer(0, 1) == 0,
                            .latency = Seconds(random.uniform())};
    INFO("seed " << seed);
    CHECK(difference(realise(program_of(chain), run_native),
                     realise(gpipe_of(chain), run_native)) == "");
  }
}

TEST_CASE("slices of equal cost are micro-batches of GPipe: same time, same peak of memory") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(74, seed);
    SlicedChain chain{.slices = random_slices(random, 1, random.integer(1, 5)),
                      .micro_batches = random.integer(1, 3),
                      .steps = random.integer(1, 3),
                      .latency = Seconds(random.uniform())};
    const int slices = random.integer(1, 5);
    chain.slices.resize(slices, chain.slices.front());
    INFO("seed " << seed << ", " << slices << " slices");
    CHECK(makespan(program_of(chain)) == doctest::Approx(makespan(gpipe_of(chain))).epsilon(1e-12));
    const auto run = [](const Program& program) {
      return measure([&](int, double) { return program; }, {.steps = 1}, false).metrics;
    };
    const Metrics sliced = run(program_of(chain)), whole = run(gpipe_of(chain));
    for (std::size_t r = 0; r < whole.devices.size(); ++r) {
      CHECK(sliced.devices[r].peak_stash == whole.devices[r].peak_stash);
    }
  }
}

TEST_CASE("all slices of a step are kept until their backwards, as micro-batches are by GPipe") {
  Random random(75, 0);
  const SlicedChain chain{.slices = random_slices(random, 4, 3), .micro_batches = 2};
  const Metrics metrics =
      measure([&](int, double) { return program_of(chain); }, {.steps = 1}, false).metrics;
  for (int stage = 0; stage < 3; ++stage) {
    double stash = 0;
    for (const auto& slice : chain.slices) stash += 2 * slice[stage].stash;
    INFO("stage " << stage << ": M = 2 micro-batches of 4 slices keep " << stash << " B");
    CHECK(metrics.devices[stage].peak_stash.value() == doctest::Approx(stash));
  }
}

TEST_CASE("a program of slices counts the user's micro-batches, none of them stale") {
  Random random(76, 0);
  SlicedChain chain{.slices = random_slices(random, 4, 3), .micro_batches = 2};
  const ProgramOfSteps program = [&](int steps, double) {
    chain.steps = steps;
    return program_of(chain);
  };
  const Metrics metrics = measure(program, {.steps = 5}, false).metrics;
  CHECK(metrics.staleness == std::map<int, std::int64_t>{{0, 5 * 2}});
  CHECK(metrics.steady);
}

TEST_CASE("the engines agree on slices of unequal times and messages") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(77, seed);
    const int stages = random.integer(2, 5), slices = random.integer(1, 5);
    const SlicedChain chain{.slices = random_slices(random, slices, stages),
                            .micro_batches = random.integer(1, 3),
                            .steps = random.integer(1, 2),
                            .split = random.integer(0, 1) == 0,
                            .latency = Seconds(random.uniform())};
    const Program program = program_of(chain);
    const Realised swept = realise(program, run_longest_path);
    INFO("seed " << seed);
    CHECK(swept.deadlock == "");
    CHECK(difference(swept, realise(program, run_event_loop)) == "");
    CHECK(difference(swept, realise_simgrid(program), 1e-9) == "");
  }
}

TEST_CASE("generations are remembered until as many as are kept have finished after them") {
  for (const int step : {1, -1}) {
    Generations<int> records;
    for (int turn = 0; turn < 10; ++turn) {
      const int number = 50 + step * turn;
      for (int member = 0; member < 3; ++member) ++records[number];
      CHECK(records[number] == 3);  // all members met the same generation
      records.finish(number, 3);
      CHECK(records.size() <= 3);
    }
    CHECK_FALSE(records.contains(50));
    CHECK(records.contains(50 + step * 7));
  }
}

TEST_CASE("a generation that a slow member has yet to record is remembered, however many come") {
  Generations<int> records;
  for (int number = 0; number < 1000; ++number) ++records[number];  // the fast member, ahead
  for (int number = 0; number < 1000; ++number) {
    CHECK(++records[number] == 2);
    records.finish(number, 5);
    if (number > 0) CHECK(records[number - 1] == 2);  // waited for a little later
  }
  CHECK(records.size() == 5);
}

TEST_CASE("what is remembered of events is what a list would hold, in whatever order they come") {
  for (int seed = 0; seed < 200; ++seed) {
    Random random(static_cast<std::uint64_t>(seed), 3);
    const auto kept = static_cast<std::uint32_t>(random.integer(0, seed % 7 == 0 ? 300 : 6));
    Generations<int> records;
    std::map<int, int> expected;
    std::vector<int> open, finished;
    for (int turn = 0; turn < 400; ++turn) {
      const bool makes = open.empty() || random.integer(0, 1) == 0;
      const int number = makes ? turn * (seed % 2 == 0 ? 1 : -1)
                               : open[random.integer(0, static_cast<int>(open.size()) - 1)];
      if (makes) open.push_back(number);
      CHECK(++records[number] == ++expected[number]);
      if (random.integer(0, 2) == 0) {
        std::erase(open, number);
        records.finish(number, kept);
        finished.push_back(number);
        if (finished.size() > kept) expected.erase(finished[finished.size() - 1 - kept]);
      }
      CHECK(records.size() == expected.size());
    }
    for (int old = -400; old <= 400; ++old) CHECK(records.contains(old) == expected.contains(old));
  }
}

}  // namespace
}  // namespace interlock::terapipe_test
