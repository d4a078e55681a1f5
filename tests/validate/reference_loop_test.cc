// The reference loop against the closed forms: two ways to the same numbers, neither through sim/.
// SPDX-License-Identifier: Apache-2.0
#include "tests/validate/support/reference_loop.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "tests/formulas/closed_form.h"
#include "tests/support/cases.h"

namespace interlock::reference_loop_test {
namespace {

double period(ReferenceCase reference) {
  reference.batches = 72;
  return reference_period(run_reference(reference), 39, 63);
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * b; }

struct Equal {
  ReferenceCase reference;
  EqualChain chain;
};

Seconds transfer_of(const ReferenceCase& reference) {
  return Seconds(static_cast<double>(reference.latency + reference.stages[0].occupancy));
}

Equal random_equal(Random& random) {
  ReferenceStage stage{.forward = random.integer(1, 20),
                       .backward_input = random.integer(1, 20),
                       .backward_weight = random.integer(1, 20),
                       .head = random.integer(0, 60),
                       .update = random.integer(0, 5),
                       .occupancy = std::max(0, random.integer(-4, 4))};
  const Ticks latency = std::max(0, random.integer(-6, 12));
  const int stages = random.integer(2, 8);
  const auto seconds = [](Ticks ticks) { return Seconds(static_cast<double>(ticks)); };
  Equal equal{
      .chain = {stages,
                {seconds(stage.forward), seconds(stage.backward_input),
                 seconds(stage.backward_weight), seconds(stage.head), seconds(stage.update)},
                seconds(latency + stage.occupancy)}};
  equal.reference.stages.assign(stages, stage);
  equal.reference.latency = latency;
  return equal;
}

TEST_CASE("the reference meets the eager, local and naive periods with queues of any depth") {
  Random random(2, 1);
  for (int trial = 0; trial < cases(30); ++trial) {
    Equal equal = random_equal(random);
    for (int depth : {-1, 1, 2}) {
      equal.reference.depth = depth;
      for (int n = 1; n <= equal.chain.stages; ++n) {
        equal.reference.n_wise = n;
        CAPTURE(trial);
        CAPTURE(depth);
        CAPTURE(n);
        if (n == 1 && depth != 1) equal.chain.transfer = Seconds(0);  // no bound by c
        CHECK(period(equal.reference) == eager_period(equal.chain, n).value());
        equal.chain.transfer = transfer_of(equal.reference);
      }
      equal.reference.fused = true;
      CHECK(period(equal.reference) == naive_period(equal.chain).value());
      equal.reference.fused = false;
    }
  }
}

/// Replaces the latency that was drawn.
void set_latency(Equal& equal, Ticks latency) {
  equal.reference.latency = latency;
  equal.chain.transfer = transfer_of(equal.reference);
}

/// Checks a row that holds in a rendezvous `where` it does, and is a bound elsewhere. Returns
/// whether the period is above the row.
bool check_rendezvous(Equal& equal, Seconds row, bool where) {
  equal.reference.depth = 0;
  const double simulated = period(equal.reference);
  INFO("K = " << equal.chain.stages << ", N = " << equal.reference.n_wise
              << ", c = " << equal.chain.transfer.value());
  CHECK(simulated >= row.value());
  if (where) CHECK(simulated == row.value());
  return simulated > row.value();
}

TEST_CASE("the reference meets the period of pairs as the authors shipped them") {
  Random random(2, 2);
  int held_up = 0, beyond = 0;
  for (int trial = 0; trial < 120; ++trial) {
    Equal equal = random_equal(random);
    // Half the transfers are short against an op, half are long.
    if (trial % 2 == 1) set_latency(equal, random.integer(0, 60));
    equal.reference.fused = equal.reference.all_heads = true;
    equal.reference.n_wise = 2;
    const Seconds expected = shipped_pairwise_period(equal.chain);
    CAPTURE(trial);
    equal.reference.depth = 1;
    CHECK(period(equal.reference) == expected.value());
    const StageTimes& s = equal.chain.stage;
    const Seconds warning =
        std::max(s.backward(), 2 * s.backward() - s.head - s.backward_input) + s.update;
    const bool in_time = equal.chain.stages <= 3 || equal.chain.transfer <= warning;
    held_up += check_rendezvous(equal, expected, in_time) ? 1 : 0;
    beyond += in_time ? 0 : 1;
  }
  CHECK(held_up > 0);
  MESSAGE("pairs in a rendezvous are above the row in " << held_up << " of " << beyond
                                                        << " cases where it is not said to hold");
}

TEST_CASE("the reference meets the eager and local periods in a rendezvous with enough warning") {
  Random random(2, 5);
  int held_up = 0;
  for (int trial = 0; trial < 80; ++trial) {
    Equal equal = random_equal(random);
    if (trial % 2 == 1) set_latency(equal, random.integer(0, 60));
    const StageTimes& s = equal.chain.stage;
    for (int n = 1; n <= equal.chain.stages; ++n) {
      equal.reference.n_wise = n;
      CAPTURE(trial);
      const Seconds warning = s.backward() + s.update + (n == 1 ? s.head : Seconds(0));
      const bool in_time =
          equal.chain.transfer <= warning || (n > 1 && n >= equal.chain.stages - 1);
      const Seconds row = n == 1 ? s.work(true, 0) : eager_period(equal.chain, n);
      held_up += check_rendezvous(equal, row, in_time) ? 1 : 0;
    }
  }
  CHECK(held_up > 0);
}

TEST_CASE("the reference meets the period of the list form") {
  Random random(2, 4);
  for (int trial = 0; trial < 60; ++trial) {
    Equal equal = random_equal(random);
    const StageTimes& stage = equal.chain.stage;
    if (stage.head > stage.forward + stage.backward() + 2 * equal.chain.transfer) continue;
    equal.reference.fused = equal.reference.all_heads = equal.reference.list = true;
    const Seconds occupancy(static_cast<double>(equal.reference.stages[0].occupancy));
    const Seconds latency(static_cast<double>(equal.reference.latency));
    for (int depth : {0, 1}) {
      equal.reference.depth = depth;
      for (int n = 2; n <= equal.chain.stages; ++n) {
        equal.reference.n_wise = n;
        CAPTURE(trial);
        CAPTURE(n);
        CHECK(period(equal.reference) ==
              list_period_with_bandwidth(equal.chain, n, latency, occupancy).value());
      }
    }
  }
}

TEST_CASE("no stage is busier than always, whatever is in flight, and local training is that") {
  Random random(2, 3);
  int met = 0, pairs = 0;
  for (int trial = 0; trial < 40; ++trial) {
    Equal equal = random_equal(random);
    equal.reference.in_flight = 2;
    equal.reference.batches = 160;
    const std::vector<StageTimes> stages(equal.chain.stages, equal.chain.stage);
    for (int n = 1; n < equal.chain.stages; ++n) {
      equal.reference.n_wise = n;
      const double bound = busiest_stage(stages, n).value();
      const double period = reference_period(run_reference(equal.reference), 30, 150);
      CAPTURE(trial);
      CAPTURE(n);
      CHECK(period >= bound - 1e-9);
      if (n == 1) CHECK(period == bound);
      pairs += n == 2 ? 1 : 0;
      met += n == 2 && close(period, bound) ? 1 : 0;
    }
  }
  MESSAGE("pairs with two in flight meet the bound in " << met << " of " << pairs << " cases");
}

}  // namespace
}  // namespace interlock::reference_loop_test
