// Closed forms of interleaved schedules whose micro-batches pass chunks in rounds: time, memory.
// SPDX-License-Identifier: Apache-2.0
//
// p ranks, v chunks (stages) a rank, m micro-batches in rounds of g, the last of l = g, or what is
// left over, f and B the ops of a chunk, c the time of a transfer, no longer than f.
#include <doctest/doctest.h>

#include <algorithm>

#include "base/random.h"
#include "tests/validate/support/laid_trial.h"

namespace interlock::rounds_test {
namespace {

struct Rounds {
  int p, v, m, g;
  int last() const { return m % g == 0 ? g : m % g; }
};

std::string words(const Rounds& r) {
  return "p " + std::to_string(r.p) + ", v " + std::to_string(r.v) + ", m " + std::to_string(r.m) +
         ", g " + std::to_string(r.g);
}

/// Visits all rounds that Megatron-LM runs too: of p to m micro-batches, the last not below p.
template <class Visit>
void for_rounds(Visit visit) {
  for (int p : {2, 3, 4, 6}) {
    for (int v : {2, 3}) {
      for (int m : {p, 2 * p, 3 * p + 1, 4 * p + 2}) {
        for (int g = p; g <= m; ++g) {
          const Rounds r{p, v, m, g};
          if (r.last() >= p) visit(r);
        }
      }
    }
  }
}

LaidCase laid_case(const Rounds& r, const StageTimes& times, const char* schedule = "interleaved") {
  return {schedule, r.p, r.v, r.m, times, "\"round\": " + std::to_string(r.g)};
}

StageTimes drawn_times(int seed) {
  Random random(57, seed);
  const auto draw = [&] { return random.integer(1000, 2000) * 1e-6; };
  const double forward = draw();
  return {Seconds(forward), Seconds(forward), Seconds(draw()), Seconds(0),
          Seconds(random.integer(0, 100) * 1e-6)};
}

TEST_CASE("rounds of any size take (m v + p - 1)(f + B) + v o without transfers") {
  int seed = 0;
  for_rounds([&](const Rounds& r) {
    const StageTimes t = drawn_times(++seed);
    const double step = (r.m * r.v + r.p - 1) * (t.forward + t.backward()).value();
    INFO(words(r));
    CHECK(close(step_time(laid_trial(laid_case(r, t))), step + r.v * t.update.value()));
  });
}

TEST_CASE("a round of more than p hides the messages between chunks, in warm-up and cool-down") {
  INFO(
      "the last rank begins p - 1 forwards and transfers late, and p - 1 backwards and transfers "
      "remain after it: 2 (p - 1) c. Before each further chunk of the warm-up, the first "
      "micro-batch of the round comes back after p f + p c, and the rank was busy for g f; in the "
      "cool-down likewise with B and the last round: "
      "(v - 1) (max(0, p c - (g - p) f) + max(0, p c - (l - p) B))");
  int seed = 0;
  for_rounds([&](const Rounds& r) {
    const StageTimes t = drawn_times(1000 + ++seed);
    const double f = t.forward.value(), b = t.backward().value(), o = t.update.value();
    for (const double share : {0.25, 0.5, 1.0}) {
      const double c = share * f;
      const double seen =
          std::max(0.0, r.p * c - (r.g - r.p) * f) + std::max(0.0, r.p * c - (r.last() - r.p) * b);
      const double step =
          (r.m * r.v + r.p - 1) * (f + b) + 2 * (r.p - 1) * c + (r.v - 1) * seen + r.v * o;
      Trial trial = laid_trial(laid_case(r, t));
      trial.latency = Seconds(c);
      const double simulated = step_time(trial);
      INFO(words(r) << ", c " << share << " f: expected " << step << ", simulated " << simulated);
      CHECK(close(simulated, step));
    }
  });
}

TEST_CASE("rank r holds (v - 1) g + 2 (p - 1 - r) + 1 chunks, and (v - 1) g + p with held W") {
  for_rounds([&](const Rounds& r) {
    for (const char* schedule : {"interleaved", "interleaved-zb"}) {
      const bool halves = std::string(schedule) != "interleaved";
      Trial trial = laid_trial(laid_case(r, drawn_times(0), schedule));
      for (TrialStage& stage : trial.stages) stage.stash = Bytes(1 << 20);
      const Metrics metrics = simulate(trial).metrics;
      for (int rank = 0; rank < r.p; ++rank) {
        const int ahead = halves ? r.p : 2 * (r.p - 1 - rank) + 1;
        const int held = std::min((r.v - 1) * r.g + ahead, r.m * r.v);
        INFO(schedule << ", " << words(r) << ", rank " << rank);
        CHECK(close(metrics.devices[rank].peak_stash.value() / (1 << 20), held));
      }
    }
  });
}

}  // namespace
}  // namespace interlock::rounds_test
