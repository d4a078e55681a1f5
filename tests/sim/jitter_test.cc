// Jitter: its moments, and that engines, schedules and replays have equal luck with equal ops.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::jitter_test {
namespace {

struct Moments {
  double mean = 0, deviation = 0, least = 1e9;
};

Moments moments_of(const Jitter& jitter, int draws) {
  Moments moments;
  double squares = 0;
  for (int i = 0; i < draws; ++i) {
    const double factor = jitter_factor(jitter, 7, static_cast<std::uint64_t>(i));
    moments.mean += factor / draws;
    squares += factor * factor / draws;
    moments.least = std::min(moments.least, factor);
  }
  moments.deviation = std::sqrt(squares - moments.mean * moments.mean);
  return moments;
}

TEST_CASE("factors have mean 1 and the spread that was asked for, whatever their shape") {
  constexpr int kDraws = 200'000;
  for (const JitterShape shape :
       {JitterShape::Lognormal, JitterShape::Normal, JitterShape::Gamma, JitterShape::Uniform}) {
    for (const double spread : {0.01, 0.1, most_spread(shape)}) {
      const Moments moments = moments_of({.shape = shape, .spread = spread}, kDraws);
      const double error = spread / std::sqrt(kDraws);
      INFO("shape " << static_cast<int>(shape) << ", spread " << spread << ": mean " << moments.mean
                    << " +- " << error << ", deviation " << moments.deviation);
      CHECK(std::abs(moments.mean - 1) < 4 * error);
      // The relative error of a deviation is sqrt((kurtosis - 1) / 4n); a lognormal one of
      // spread 1 has a kurtosis of 41.
      CHECK(std::abs(moments.deviation / spread - 1) < 4 * std::sqrt(40.0 / 4 / kDraws));
      CHECK(moments.least >= 0);
    }
  }
}

/// Random jitter of ops and messages, and a rank that is slow for a step.
Variation random_variation(Random& random, const Program& program) {
  const auto jitter = [&] {
    const auto shape = static_cast<JitterShape>(random.integer(0, 3));
    return Jitter{shape, static_cast<JitterScope>(random.integer(0, 2)), 0.25 * random.uniform()};
  };
  Variation variation{.seed = random.bits()};
  if (random.integer(0, 3) > 0) variation.compute = jitter();
  if (random.integer(0, 3) > 0) variation.transfers = jitter();
  if (random.integer(0, 2) == 0) {
    const int rank = random.integer(0, static_cast<int>(program.ranks.size()) - 1);
    variation.slow.push_back({rank, 0, random.integer(1, program.steps), 1.5});
  }
  return variation;
}

TEST_CASE("the sweep and the loop agree exactly under jitter") {
  int ended = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(811, seed);
    const TestChain chain = random_chain(random);
    Program program = program_of(chain);
    if (chooses_order(program)) continue;
    program.variation = random_variation(random, program);
    const Realised swept = realise(program, run_longest_path);
    INFO("seed " << seed << ": " << describe(chain));
    CHECK(difference(swept, realise(program, run_event_loop)) == "");
    ended += swept.deadlock.empty() ? 1 : 0;
  }
  CHECK(ended > 150);
}

TEST_CASE("SimGrid and native agree to 1e-9 under jitter where no link is shared") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(812, seed);
    const TestChain chain = random_chain(random);
    Program program = program_of(chain);
    program.variation = random_variation(random, program);
    INFO("seed " << seed << ": " << describe(chain));
    CHECK(difference(realise(program, run_native), realise_simgrid(program), 1e-9) == "");
  }
}

TEST_CASE("an order that was chosen under jitter replays to identical times") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    Random random(813, seed);
    const TestChain chain = random_choosing_chain(random);
    Program program = program_of(chain);
    program.variation = random_variation(random, program);
    const Realised realised = realise(program, run_event_loop);
    if (!realised.deadlock.empty()) continue;
    const Program frozen = freeze(program, EngineKind::Native);
    INFO("seed " << seed << ": " << describe(chain));
    CHECK(difference(realised, realise(frozen, run_longest_path)) == "");
  }
}

using OpName = std::tuple<OpKind, int, int>;  // letter, stage, micro-batch

std::map<OpName, double> durations_of(std::string_view kind, std::uint64_t seed) {
  TestChain chain = make_chain(3, kind);
  chain.micro_batches = 6;
  chain.most_ticks_per_second = 1e12;
  Program program = program_of(chain);
  program.variation = {.seed = seed, .compute = {.spread = 0.3}};
  std::map<OpName, double> durations;
  for (const Span& span : realise(program, run_native).log.spans) {
    const OpInfo& op = program.ops[span.op];
    durations[{op.kind, op.stage, span.micro_batch}] = (span.end - span.start).value();
  }
  return durations;
}

TEST_CASE("an op takes the same time in every schedule under one seed, and another under others") {
  const auto one = durations_of("1f1b", 5);
  const auto other = durations_of("gpipe", 5);
  const auto unlucky = durations_of("1f1b", 6);
  REQUIRE(one.size() == other.size());
  for (const auto& [op, duration] : one) {
    CHECK(std::abs(duration - other.at(op)) < 1e-9);
    if (std::get<0>(op) != OpKind::U) CHECK(std::abs(duration - unlucky.at(op)) > 1e-9);
  }
}

TEST_CASE("what has one factor is an op, a rank in a step, or a rank") {
  for (const JitterScope scope : {JitterScope::Op, JitterScope::Step, JitterScope::Device}) {
    TestChain chain = make_chain(2, "gpipe");
    chain.micro_batches = 3;
    chain.steps = 4;
    Program program = program_of(chain);
    program.variation = {.compute = {.scope = scope, .spread = 0.2}};
    std::map<double, int> lengths;  // of forwards of one second, in millionths
    for (const Span& span : realise(program, run_native).log.spans) {
      if (program.ops[span.op].kind != OpKind::F) continue;
      ++lengths[std::round((span.end - span.start).value() * 1e6)];
    }
    const std::size_t expected = scope == JitterScope::Op ? 24 : scope == JitterScope::Step ? 8 : 2;
    INFO("2 ranks x 4 steps x 3 micro-batches, scope " << static_cast<int>(scope));
    CHECK(lengths.size() == expected);
  }
}

}  // namespace
}  // namespace interlock::jitter_test
