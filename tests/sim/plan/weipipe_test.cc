// WeiPipe: its turns against the authors' loops, its step, its traffic and its memory.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/sim/support/realised.h"
#include "tests/sim/support/ring_by_hand.h"
#include "tests/sim/support/test_chain.h"
#include "tests/support/cases.h"

namespace interlock::weipipe_test {
namespace {

TestChain chain_of(int ranks, int rounds, const ChainStage& stage = {}) {
  TestChain chain = make_laid_chain(ranks, "weipipe", stage);
  chain.micro_batches = chain.policy.update_every = rounds * ranks;
  return chain;
}

/// Returns the bytes that went from rank to rank.
std::map<std::pair<int, int>, double> bytes_of(const Program& program, const TraceLog& log) {
  std::map<std::pair<int, int>, double> bytes;
  for (const Transfer& transfer : log.transfers) {
    const Channel& channel = program.channels[transfer.channel];
    if (channel.wire >= 0) bytes[{channel.from_rank, channel.to_rank}] += channel.bytes.value();
  }
  return bytes;
}

TEST_CASE("WeiPipe of 2 ranks and of 3, as text") {
  CHECK(to_text(schedule_of(chain_of(2, 1))) ==
        "0F0 1F0 1B0 0B0 0U1\n"
        "2F1 3F1 3B1 2B1 3U1\n");
  // Rank 1 owns chunk 2, which is stage 3 + 2 there, and rank 2 owns chunk 1: 6 + 1.
  CHECK(to_text(schedule_of(chain_of(3, 2))) ==
        "0F0 1F0 2F0 2B0 0F3 1B0 1F3 0B0 2F3 2B3 1B3 0B3 0U5\n"
        "3F1 4F1 5F1 5B1 3F4 4B1 4F4 3B1 5F4 5B4 4B4 3B4 5U5\n"
        "6F2 7F2 8F2 8B2 6F5 7B2 7F5 6B2 8F5 8B5 7B5 6B5 7U5\n");
}

TEST_CASE("each op has its chunk's weights at hand, when the authors' loops bring them") {
  int messages = 0;
  for (int seed = 0; seed < cases(300); ++seed) {
    Random random(371, seed);
    TestChain chain = random_chain(random, "weipipe");
    chain.policy.barrier = false;
    if (chain.copies == 1) continue;  // has no messages
    INFO("seed " << seed << ": " << describe(chain));
    const Program program = program_of(chain);
    const Realised run = realise(program, run_native);
    REQUIRE(run.deadlock == "");
    const RingRun ring = run_by_hand(chain);
    std::size_t found = 0;
    const double allowed = 1e-9 * ring.last;
    for (const Span& span : run.log.spans) {
      const OpInfo& op = program.ops[span.op];
      if (op.kind == OpKind::R) continue;
      ++found;
      const auto at = ring.times.find({op.kind, op.stage, span.micro_batch});
      REQUIRE(at != ring.times.end());
      CHECK(std::abs(span.start.value() - at->second.start) <= allowed);
      CHECK(std::abs(span.end.value() - at->second.end) <= allowed);
    }
    CHECK(found == ring.times.size());
    CHECK(run.summary.makespan.value() == doctest::Approx(ring.last).epsilon(1e-9));
    std::map<std::pair<int, int>, double> bytes = bytes_of(program, run.log);
    for (const auto& [ranks, size] : ring.bytes) {
      CHECK(bytes[ranks] == doctest::Approx(size).epsilon(1e-9));
    }
    CHECK(bytes.size() == ring.bytes.size());
    messages += static_cast<int>(run.log.transfers.size());
    const Program frozen = freeze(program, EngineKind::Native);
    CHECK(difference(run, realise(frozen, run_longest_path)) == "");
    if (seed % 5 == 0) CHECK(difference(run, realise_simgrid(program), 1e-9) == "");
  }
  CHECK(messages > 10000);
}

/// Returns how long a device idles in a step where messages take no time. The first rank's turns of
/// forwards take a forward each from the first one on; the last rank, which sends to it and so is
/// at most one turn ahead, begins its own in turn p - 1. The end of a step mirrors that with
/// backwards. With a single round the one's backwards are beside the other's forwards.
double idle_of(int p, int rounds, double forward, double backward) {
  if (p <= 2) return 0;
  if (rounds > 1) return (p - 2) * (forward + backward);
  return forward + backward + (p - 3) * std::max(forward, backward);
}

TEST_CASE("where messages take no time, a step takes (m + p - 2) (F + B) and an update") {
  for (int p = 1; p <= 8; ++p) {
    for (int rounds = 1; rounds <= 5; ++rounds) {
      for (const double forward : {1, 4, 9}) {
        TestChain chain =
            chain_of(p, rounds,
                     {.forward = forward, .backward_input = 3, .backward_weight = 1, .update = 5});
        chain.steps = 3;
        const Realised run = realise(program_of(chain), run_native);
        const double idle = idle_of(p, rounds, forward, 4);
        INFO("p " << p << ", rounds " << rounds << ", F " << forward << ", B 4, U 5");
        CHECK(run.summary.makespan.value() ==
              doctest::Approx(3 * (rounds * p * (forward + 4) + idle + 5)));
      }
    }
  }
}

// The first forward of all but the first rank waits for weights; every later chunk comes beside the
// op before. The last sum goes a hop further when its backward is done, and then home.
TEST_CASE("weights that take w, and sums that take g, make a step w + 2g longer") {
  constexpr double kForward = 4, kBackward = 8, kBandwidth = 1000;  // of a chain's links
  for (int p = 2; p <= 8; ++p) {
    for (int rounds = 1; rounds <= 4; ++rounds) {
      for (const double w : {0.5, 1.0, 2.0}) {
        for (const double g : {0.0, 0.25, 2.0}) {
          TestChain chain =
              chain_of(p, rounds, {.forward = kForward, .backward_input = 4, .backward_weight = 4});
          for (StageCost& cost : chain.costs) {
            cost.state.weights = Bytes(w * kBandwidth);
            cost.state.gradients = Bytes(g * kBandwidth);
          }
          const Realised run = realise(program_of(chain), run_native);
          const double compute = rounds * p * (kForward + kBackward);
          const double idle = idle_of(p, rounds, kForward, kBackward);
          INFO("p " << p << ", rounds " << rounds << ", w " << w << ", g " << g);
          CHECK(run.summary.makespan.value() == doctest::Approx(compute + idle + w + 2 * g));
        }
      }
    }
  }
}

TEST_CASE("a rank sends m(2 - 1/p) + 2p - 4 chunks in a step, and m + p - 2 sums and one home") {
  constexpr double kWeights = 1000, kSums = 1;
  for (int p = 2; p <= 7; ++p) {
    for (int rounds = 1; rounds <= 5; ++rounds) {
      TestChain chain = chain_of(p, rounds);
      for (StageCost& cost : chain.costs) {
        cost.state.weights = Bytes(kWeights);
        cost.state.gradients = Bytes(kSums);
        cost.output = Bytes(12345);  // activations stay
      }
      chain.steps = 2;
      const Program program = program_of(chain);
      const auto bytes = bytes_of(program, realise(program, run_native).log);
      for (int r = 0; r < p; ++r) {
        double sent = 0;
        for (int to = 0; to < p; ++to) {
          if (bytes.contains({r, to})) sent += bytes.at({r, to});
        }
        const int m = rounds * p, home = 2 * r == p - 1 ? 0 : 1;
        INFO("p " << p << ", m " << m << ", rank " << r);
        CHECK(sent == 2 * ((2 * m - rounds + 2 * p - 4) * kWeights + (m + p - 2 + home) * kSums));
      }
    }
  }
}

TEST_CASE("a rank keeps its own chunk, four to pass on, three of gradients, and p stashes") {
  constexpr double kStash = 100;
  for (int p = 2; p <= 6; ++p) {
    TestChain chain = chain_of(p, 3, {.stash = kStash});
    for (int stage = 0; stage < p * p; ++stage) {
      const double chunk = stage % p + 1;  // the last is the largest
      chain.costs[stage].state = {Bytes(10 * chunk), Bytes(20 * chunk), Bytes(60 * chunk)};
    }
    const Program program = program_of(chain);
    const Metrics metrics = measure(programs_of(chain), {}, false).metrics;
    for (int r = 0; r < p; ++r) {
      INFO("p " << p << ", rank " << r);
      const auto& resident = program.ranks[r].resident;
      const double own = (p - r) % p + 1;
      const auto at = [&](MemoryClass of) { return resident[static_cast<int>(of)].value(); };
      CHECK(at(MemoryClass::Weights) == 10 * own);
      CHECK(at(MemoryClass::Gradients) == 20 * own);
      CHECK(at(MemoryClass::Optimizer) == 60 * own);
      CHECK(at(MemoryClass::Communication) == 4 * 10 * p + 3 * 20 * p);
      CHECK(metrics.devices[r].peak_stash.value() == p * kStash);
    }
  }
}

/// Returns the most bytes that a rank of a ring holds beside what it keeps, by its ops one after
/// the other: a forward keeps its stash and makes the next one's input in place of its own, a
/// backward makes a gradient from one, in its workspace, and then gives all three back.
double most_of_ops(const std::vector<Op>& ops, const std::vector<StageCost>& chunks) {
  const int last = static_cast<int>(chunks.size()) - 1;
  const auto output = [&](int chunk) {
    return 0 <= chunk && chunk < last ? chunks[chunk].output.value() : 0;
  };
  double held = 0, most = 0;
  for (const Op& op : ops) {
    const int chunk = op.stage % (last + 1);
    const StageCost& cost = chunks[chunk];
    if (op.kind == OpKind::F) held += cost.stash.value() + output(chunk) - output(chunk - 1);
    if (op.kind == OpKind::B) held += cost.workspace.value() + output(chunk - 1);
    most = std::max(most, held);
    if (op.kind != OpKind::B) continue;
    held -= cost.workspace.value() + output(chunk) + cost.stash.value();
  }
  CHECK(held == 0);
  return most;
}

TEST_CASE("memory peaks as a count of a rank's ops and buffers has it") {
  for (int seed = 0; seed < cases(100); ++seed) {
    Random random(373, seed);
    const int p = random.integer(1, 5);
    TestChain chain = chain_of(p, random.integer(1, 4));
    const auto bytes = [&] { return Bytes(random.integer(0, 50)); };
    std::vector<StageCost> chunks(chain.costs.begin(), chain.costs.begin() + p);
    double weights = 0, gradients = 0;  // of the largest chunk
    for (StageCost& chunk : chunks) {
      chunk.stash = bytes();
      chunk.output = bytes();
      chunk.workspace = bytes();
      chunk.state = {bytes(), bytes(), bytes()};
      weights = std::max(weights, chunk.state.weights.value());
      gradients = std::max(gradients, chunk.state.gradients.value());
    }
    for (int stage = 0; stage < p * p; ++stage) chain.costs[stage] = chunks[stage % p];
    const Metrics metrics = measure(programs_of(chain), {}, false).metrics;
    const Schedule schedule = schedule_of(chain);
    const double buffers = p == 1 ? 0 : 4 * weights + 3 * gradients;
    for (int r = 0; r < p; ++r) {
      INFO("seed " << seed << ", rank " << r << ": " << describe(chain));
      const double own = chunks[(p - r) % p].state.total().value();
      const double most = most_of_ops(expand(schedule.ranks[r].front()), chunks);
      CHECK(metrics.devices[r].peak_memory.value() == own + buffers + most);
    }
  }
}

}  // namespace
}  // namespace interlock::weipipe_test
