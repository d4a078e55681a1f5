// Recompute before the gradient has come, against closed forms and a list of events.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/sim/support/test_chain.h"

namespace interlock::early_recompute_test {
namespace {

struct Times {
  double forward = 1, again = 1, backward = 2;  // of a stage; a backward without what is again
};

TestChain chain_of(int stages, int micro_batches, const Times& t, std::string_view kind,
                   bool early) {
  const ChainStage stage = {
      .forward = t.forward, .backward_input = t.backward / 2, .backward_weight = t.backward / 2};
  TestChain chain =
      make_chain(std::vector<ChainStage>(static_cast<std::size_t>(stages), stage), kind);
  for (StageCost& cost : chain.costs) cost.recompute = {Seconds(t.again), Flops(0)};
  chain.micro_batches = chain.policy.update_every = micro_batches;
  chain.policy.recomputes_early = early;
  return chain;
}

double step_of(const TestChain& chain) {
  return measure(programs_of(chain), {.steps = 3}, false).metrics.step_time.value();
}

/// Returns the time of a step of 1F1B, op by op: messages take no time, and each rank does min(p -
/// s - 1, m) forwards, then one forward and one backward in turn.
double listed(int p, int m, const Times& t, bool early) {
  struct RankState {
    int forwards = 0, backwards = 0;
    double free = 0;
  };
  std::vector<RankState> ranks(static_cast<std::size_t>(p));
  std::vector<std::vector<double>> forward(p, std::vector<double>(m, -1)), backward = forward;
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = 0; s < p; ++s) {
      RankState& rank = ranks[s];
      const int ahead = std::min(p - s, m);
      const bool goes_on = rank.forwards < m && rank.forwards - rank.backwards < ahead;
      if (goes_on) {
        const int i = rank.forwards;
        if (s > 0 && forward[s - 1][i] < 0) continue;
        const double input = s > 0 ? forward[s - 1][i] : 0;
        rank.free = forward[s][i] = std::max(rank.free, input) + t.forward;
        ++rank.forwards;
        moved = true;
      } else if (rank.backwards < m) {
        const int i = rank.backwards;
        if (s + 1 < p && backward[s + 1][i] < 0) continue;
        const double gradient = s + 1 < p ? backward[s + 1][i] : 0;
        const double begin = early ? std::max(rank.free + t.again, gradient)
                                   : std::max(rank.free, gradient) + t.again;
        rank.free = backward[s][i] = begin + t.backward;
        ++rank.backwards;
        moved = true;
      }
    }
  }
  return ranks.front().free;
}

TEST_CASE("1F1B that recomputes early: m (F + R + B) + (p - 1)(F + B), and R more a stage if not") {
  for (const int p : {1, 2, 4, 5}) {
    for (const int m : {1, 4, 5, 12}) {
      for (const Times& t : {Times{1, 1, 2}, Times{1, 0.5, 2}, Times{2, 2, 3}}) {
        const double busy = m * (t.forward + t.again + t.backward);
        for (const bool early : {false, true}) {
          INFO(p << " stages, " << m << " micro-batches, F " << t.forward << ", R " << t.again
                 << ", B " << t.backward << (early ? ", early" : ""));
          const double step = step_of(chain_of(p, m, t, "1f1b", early));
          CHECK(step == doctest::Approx(listed(p, m, t, early)).epsilon(1e-9));
          if (m < p) continue;  // the formulas are of full pipelines
          const double bubble = t.forward + t.backward + (early ? 0 : t.again);
          CHECK(step == doctest::Approx(busy + (p - 1) * bubble).epsilon(1e-9));
        }
      }
    }
  }
}

TEST_CASE("recomputing early changes when, not what: work, traffic and stash stay") {
  for (const char* kind : {"gpipe", "1f1b", "zb-h1", "interleaved", "pipedream"}) {
    TestChain late = make_laid_chain(4, kind, {.output = 10, .stash = 30});
    for (StageCost& cost : late.costs) {
      cost.recompute = {Seconds(1), Flops(3)};
      cost.workspace = Bytes(40);
    }
    late.micro_batches = 8;
    if (late.policy.update_every > 1) late.policy.update_every = 8;
    TestChain early = late;
    early.policy.recomputes_early = true;
    const Metrics one = measure(programs_of(late), {.steps = 3}, false).metrics;
    const Metrics other = measure(programs_of(early), {.steps = 3}, false).metrics;
    INFO(kind);
    CHECK(other.step_time <= one.step_time);
    CHECK(other.busy * other.step_time / (one.busy * one.step_time) ==
          doctest::Approx(1).epsilon(1e-9));
    REQUIRE(one.links.size() == other.links.size());
    for (std::size_t l = 0; l < one.links.size(); ++l) {
      CHECK(one.links[l].bytes == other.links[l].bytes);
    }
    for (std::size_t d = 0; d < one.devices.size(); ++d) {
      CHECK(other.devices[d].peak_stash == one.devices[d].peak_stash);
      // The output before may be on its way still, when what is computed again needs its room.
      CHECK(other.devices[d].peak_memory <= one.devices[d].peak_memory + Bytes(10));
    }
  }
}

}  // namespace
}  // namespace interlock::early_recompute_test
