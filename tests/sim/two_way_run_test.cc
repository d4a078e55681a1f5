// Schedules with two copies, a V or overlapped pairs: their times, memory and messages.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <numeric>

#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::two_way_run_test {
namespace {

TestChain pipeline(std::string_view kind, int ranks, int micro_batches,
                   const ChainStage& stage = {}) {
  TestChain chain = make_laid_chain(ranks, kind, stage);
  chain.micro_batches = micro_batches;
  return chain;
}

/// Weights, gradients and optimiser states, in bytes.
constexpr double kWeights = 3000, kGradients = 2000, kOptimizer = 5000;

TestChain with_state(TestChain chain) {
  for (StageCost& cost : chain.costs) {
    cost.state = {Bytes(kWeights), Bytes(kGradients), Bytes(kOptimizer)};
  }
  return chain;
}

TEST_CASE("engines agree on every two-way schedule, whatever ops and transfers take") {
  for (const std::string_view kind : {"dualpipe", "dualpipe-v", "chimera", "bitpipe", "hanayo"}) {
    for (int p : {2, 4}) {
      for (int m : {2 * p, 4 * p}) {
        TestChain chain = with_state(pipeline(kind, p, m, {2, 3, 1, 0, 0.5, 500, 700}));
        chain.steps = 2;
        chain.policy.overlap = 0.5;
        chain.cluster.machines.front().port_latency = Seconds(0.25);
        for (std::size_t s = 0; s < chain.costs.size(); ++s) {
          if (chain.copies == 1 && s % 3 == 1) chain.costs[s].forward.time = Seconds(2.5);
        }
        const Program program = program_of(chain);
        INFO(schedule_named(kind).name << ", p " << p << ", M " << m);
        const Realised swept = realise(program, run_longest_path);
        CHECK(swept.deadlock == "");
        CHECK(difference(swept, realise(program, run_event_loop)) == "");
        CHECK(difference(swept, realise_simgrid(program)) == "");
      }
    }
  }
}

TEST_CASE("two-way schedules never deadlock, with or without transfers and a barrier") {
  for (const std::string_view kind : {"dualpipe", "dualpipe-v", "chimera", "bitpipe", "hanayo"}) {
    for (int p = 2; p <= 10; p += 2) {
      for (int m = 2 * p; m <= 6 * p; m += kind == "chimera" || kind == "bitpipe" ? p : 2) {
        TestChain chain = pipeline(kind, p, m, {.output = m % 4 == 0 ? 0.0 : 3000.0});
        chain.steps = 3;
        chain.policy.barrier = m % 3 == 0;
        const Program program = program_of(chain);
        const Realised run = realise(program, run_native);
        INFO(schedule_named(kind).name << ", p " << p << ", M " << m);
        CHECK(run.deadlock == "");
        CHECK(run.summary.tasks == count_tasks(program));
      }
    }
  }
}

TEST_CASE("a deadlock names stages of the model, of whichever copy") {
  TestChain chain = pipeline("dualpipe", 4, 8);
  chain.policy.queue = {QueuePolicy::Kind::Rendezvous, 0};
  const std::string told = realise(program_of(chain), run_native).deadlock;
  INFO(told);
  CHECK(told.find("rank 3 waits on stage 0 for room in the queue to stage 1") != told.npos);
  for (const char* stage : {"stage 4", "stage 5", "stage 6", "stage 7"}) {
    CHECK(told.find(stage) == told.npos);
  }
}

TEST_CASE("a pair takes F + B - overlap x min(F, B), recompute in B, and both parts their share") {
  // F 3, bi 1, bw 4, recompute 2: B = 7. Both of 2 ranks are in the middle. With 4 micro-batches a
  // way: F0 F1 alone, then 3 times F0 with B1 (the first time alone) and F1 with B0, then B1 and
  // I0, W0: 5 pairs, and no rank waits.
  for (double overlap : {0.0, 0.25, 1.0}) {
    TestChain chain = pipeline("dualpipe", 2, 8, {3, 1, 4});
    for (StageCost& cost : chain.costs) cost.recompute = {Seconds(2), Flops(0)};
    chain.policy.overlap = overlap;
    const Program program = program_of(chain);
    const Realised run = realise(program, run_native);
    const double busy = 8 * (3 + 7), pairs = 5;
    INFO("overlap " << overlap << ": " << busy << " - " << pairs << " x " << 3 * overlap);
    CHECK(run.summary.makespan.value() == doctest::Approx(busy - pairs * 3 * overlap));
  }
}

TEST_CASE("both copies of a stage are resident, and exchange gradients before they update") {
  for (const std::string_view kind : {"dualpipe", "chimera"}) {
    TestChain chain = with_state(pipeline(kind, 4, 8, {.output = 100}));
    const Program program = program_of(chain);
    for (const Rank& rank : program.ranks) {
      CHECK(rank.resident[static_cast<int>(MemoryClass::Weights)] == Bytes(2 * kWeights));
      CHECK(rank.resident[static_cast<int>(MemoryClass::Gradients)] == Bytes(2 * kGradients));
      CHECK(rank.resident[static_cast<int>(MemoryClass::Optimizer)] == Bytes(2 * kOptimizer));
    }
    // A rank and the one opposite hold the same two stages and send each other both gradients; the
    // next rank gets the activations of 4 micro-batches on their way down, and gradients of the 4
    // that came up: 8 x 100. In the middle both happen on one link.
    const Metrics metrics = measure(programs_of(chain), {}, false).metrics;
    for (const LinkMetrics& link : metrics.links) {
      const int from = link.name[0] - '0', to = link.name[3] - '0';
      const double neighbours = std::abs(from - to) == 1 ? 8 * 100 : 0;
      const double opposite = from + to == 3 ? 2 * kGradients : 0;
      INFO(schedule_named(kind).name << ", link " << link.name);
      CHECK(link.bytes == Bytes(neighbours + opposite));
    }
    CHECK(metrics.links.size() == 6 + 2);
  }
}

TEST_CASE("an update waits for the gradients of the other copy") {
  // Chimera on 2 ranks, 2 micro-batches, F = B = 1 s: both ranks end their backwards at 4 s. The
  // gradients of stage 0 take 2 s at 1 kB/s both ways; then its update of 1 s, then stage 1's.
  TestChain chain = pipeline("chimera", 2, 2, {1, 0.5, 0.5, 0, 1});
  const TestChain stateful = with_state(chain);
  CHECK(realise(program_of(chain), run_native).summary.makespan == Seconds(4 + 2));
  CHECK(realise(program_of(stateful), run_native).summary.makespan == Seconds(4 + 2 + 1 + 2 + 1));
}

TEST_CASE("a step of many micro-batches is as small a program as a short one") {
  for (const std::string_view kind : {"dualpipe", "dualpipe-v", "chimera", "bitpipe", "hanayo"}) {
    const auto size = [&](int m) { return program_of(pipeline(kind, 8, m)).instructions.size(); };
    INFO(schedule_named(kind).name);
    CHECK(size(80) == size(6400));
  }
  const auto waves = [](int m) {
    TestChain chain = make_laid_chain(8, "hanayo", {}, 4);
    chain.micro_batches = m;
    return program_of(chain).instructions.size();
  };
  CHECK(waves(8 * 20) == waves(8 * 1000));
}

}  // namespace
}  // namespace interlock::two_way_run_test
