// Weight gradients of the readout at the end of the step, against lists of events.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/support/test_chain.h"

namespace interlock::deferred_readout_test {
namespace {

/// Times of 1F1B on `ranks` devices. `readout`: of `backward` on the last one, what may wait.
struct Case {
  int ranks = 2, micro_batches = 4, deferred = 1;
  double forward = 1, backward = 2, last_backward = 3, readout = 1;
};

constexpr double kLogits = 40, kStash = 30;

TestChain chain_of(const Case& c, std::string_view kind = "1f1b") {
  TestChain chain = make_chain(
      std::vector<ChainStage>(static_cast<std::size_t>(c.ranks), {.forward = c.forward,
                                                                  .backward_input = c.backward,
                                                                  .backward_weight = 0,
                                                                  .stash = kStash}),
      kind);
  StageCost& last = chain.costs.back();
  last.backward_input.time = Seconds(c.last_backward - c.readout);
  last.backward_weight.time = last.deferrable.time = Seconds(c.readout);
  last.deferred = Bytes(kLogits);
  chain.micro_batches = chain.policy.update_every = c.micro_batches;
  chain.policy.deferred_readout = c.deferred;
  return chain;
}

/// Returns the ends of the steps on rank 0, op by op. Messages and updates take no time. Each rank
/// does min(p - s, m) forwards, then a backward and a forward in turn; the last one makes the
/// gradients that it has put off when it has done all others of the step.
std::vector<double> ends_of_steps(const Case& c, int steps) {
  struct Op {
    char kind;
    int micro_batch;
  };
  const int p = c.ranks, m = c.micro_batches, all = steps * m;
  std::vector<std::vector<Op>> orders(p);
  for (int s = 0; s < p; ++s) {
    for (int first = 0; first < all; first += m) {
      int forwards = 0;
      for (; forwards < std::min(p - s, m); ++forwards)
        orders[s].push_back({'F', first + forwards});
      for (int b = 0; b < m; ++b) {
        orders[s].push_back({'B', first + b});
        if (forwards < m) orders[s].push_back({'F', first + forwards++});
      }
      for (int b = 0; s == p - 1 && b < std::min(c.deferred, m); ++b) {
        orders[s].push_back({'W', first + b});
      }
    }
  }
  std::vector<std::vector<double>> forward(p, std::vector<double>(all, -1)), backward = forward;
  std::vector<double> free(p, 0);
  std::vector<std::size_t> next(p, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = 0; s < p; ++s) {
      if (next[s] == orders[s].size()) continue;
      const auto [kind, b] = orders[s][next[s]];
      const bool forwards = kind == 'F', top = s == p - 1;
      double ready = 0, time = c.readout;
      if (forwards && s > 0) ready = forward[s - 1][b];
      if (kind == 'B' && !top) ready = backward[s + 1][b];
      if (ready < 0) continue;
      if (forwards) time = c.forward;
      if (kind == 'B') time = top ? c.last_backward : c.backward;
      if (kind == 'B' && top && b % m < c.deferred) time -= c.readout;
      free[s] = std::max(free[s], ready) + time;
      if (kind != 'W') (forwards ? forward : backward)[s][b] = free[s];
      ++next[s];
      moved = true;
    }
  }
  std::vector<double> ends;
  for (int step = 1; step <= steps; ++step) ends.push_back(backward[0][step * m - 1]);
  return ends;
}

/// Returns whether the last rank is done before the others.
bool chain_like(std::string_view kind) { return kind == "gpipe" || kind == "1f1b"; }

Metrics measured(const TestChain& chain) {
  return measure(programs_of(chain), {.steps = 3}, false).metrics;
}

TEST_CASE("a step of 1F1B whose last rank puts readouts off is as long as its list of events") {
  for (const int p : {1, 2, 4}) {
    for (const int m : {1, 2, 5, 12}) {
      for (const int deferred : {1, 2, 5, 100}) {
        for (const double readout : {0.25, 1.0, 2.5}) {
          const Case c = {.ranks = p,
                          .micro_batches = m,
                          .deferred = deferred,
                          .last_backward = 2 + readout,
                          .readout = readout};
          const std::vector<double> ends = ends_of_steps(c, 8);
          INFO(p << " ranks, " << m << " micro-batches, " << deferred << " put off, readout of "
                 << readout << " s");
          CHECK(measured(chain_of(c)).step_time.value() ==
                doctest::Approx(ends[7] - ends[6]).epsilon(1e-9));
        }
      }
    }
  }
}

TEST_CASE("putting readouts off saves what fits beside the way back of the last micro-batch") {
  // Every rank is as busy as the others; the last ends (p - 1) backwards before the first.
  const Case c = {.ranks = 4, .micro_batches = 12, .backward = 2, .last_backward = 3};
  Case none = c;
  none.deferred = 0;
  CHECK(measured(chain_of(none)).step_time.value() == doctest::Approx(12 * 4 + 3 * 3));
  for (const int deferred : {1, 3, 6, 9, 12}) {
    Case some = c;
    some.deferred = deferred;
    const double hidden = std::min(deferred, 3 * (1 + 2));
    CAPTURE(deferred);
    CHECK(measured(chain_of(some)).step_time.value() == doctest::Approx(12 * 4 + 3 * 3 - hidden));
  }
}

TEST_CASE("until then the last rank keeps logits, beside the stash of a micro-batch") {
  for (const int deferred : {0, 1, 3, 12, 100}) {
    const Metrics m = measured(chain_of({.ranks = 3, .micro_batches = 12, .deferred = deferred}));
    CAPTURE(deferred);
    // Those of the backward at work are made by it; the last of all is held by none.
    const double held = deferred >= 12 ? std::max(12 * kLogits, 11 * kLogits + kStash)
                                       : deferred * kLogits + kStash;
    CHECK(m.devices[2].peak_memory.value() == doctest::Approx(deferred == 0 ? kStash : held));
    CHECK(m.devices[0].peak_memory.value() == doctest::Approx(3 * kStash));
  }
}

TEST_CASE("as much is computed, and gradients leave when the last of them is made") {
  for (const char* kind : {"gpipe", "1f1b", "interleaved", "breadth-first", "hanayo"}) {
    TestChain at_once = make_laid_chain(4, kind, {.output = 10, .stash = 30});
    StageCost& last = at_once.costs.back();
    last.deferrable = last.backward_weight;
    at_once.micro_batches = 8;
    if (at_once.policy.update_every > 1) at_once.policy.update_every = 8;
    TestChain later = at_once;
    later.policy.deferred_readout = 3;
    const Metrics one = measured(at_once), other = measured(later);
    INFO(kind);
    INFO("elsewhere the last stage may be on a rank that goes back to the end of the step");
    if (chain_like(kind)) CHECK(other.step_time <= one.step_time);
    CHECK(other.busy * other.step_time / (one.busy * one.step_time) ==
          doctest::Approx(1).epsilon(1e-9));
    int put_off = 0, made = 0;
    const Schedule schedule = schedule_of(later);
    for (const Sequence& sequence : schedule.ranks[schedule.rank_of_stage.back()]) {
      for (const Op& op : expand(sequence)) {
        if (op.kind == OpKind::U) CHECK(made == 3);
        if (op.defers) ++(op.kind == OpKind::W ? made : put_off);
      }
    }
    CHECK(put_off == 3);
    CHECK(made == 3);
  }
}

}  // namespace
}  // namespace interlock::deferred_readout_test
