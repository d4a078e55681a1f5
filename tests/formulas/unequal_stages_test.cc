// Unequal stages: the engines against the reference loop, op by op, and against the loop bound.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "base/random.h"
#include "tests/validate/support/trial.h"

namespace interlock::unequal_stages_test {
namespace {

/// Draws ops of no duration only where no rank has a choice: it is left open whether a rank knows
/// of an op that begins and ends while it chooses.
ReferenceStage random_stage(Random& random, int least) {
  return {.forward = random.integer(1, 20),
          .backward_input = random.integer(1, 20),
          .backward_weight = random.integer(1, 20),
          .head = std::max(least, random.integer(-8, 30)),
          .update = std::max(least, random.integer(-4, 6)),
          .occupancy = std::max(0, random.integer(-6, 6))};
}

std::vector<int> random_placement(Random& random, int stages) {
  const int ranks = random.integer(1, stages);
  std::vector<int> placement(stages);
  for (int i = 0; i < stages; ++i) placement[i] = i < ranks ? i : random.integer(0, ranks - 1);
  return placement;
}

ReferenceCase random_case(std::uint64_t seed) {
  Random random(31, seed);
  ReferenceCase c;
  const int stages = random.integer(1, 8);
  c.n_wise = random.integer(1, stages);
  c.list = c.n_wise > 1 && random.integer(0, 3) == 0;
  c.fused = c.list || random.integer(0, 1) == 0;
  c.all_heads = c.n_wise > 1 && random.integer(0, 1) == 0;
  c.skip_unneeded = !c.all_heads && random.integer(0, 2) == 0;
  c.depth = random.integer(-1, 2);
  c.in_flight = c.list ? 1 : random.integer(1, 3);
  const bool several = random.integer(0, 1) == 0;
  if (several) c.rank_of_stage = random_placement(random, stages);
  const int least = several || c.in_flight > 1 ? 1 : 0;
  for (int i = 0; i < stages; ++i) c.stages.push_back(random_stage(random, least));
  // Short against the ops, or long, which makes a difference to who waits for whom.
  c.latency = Ticks{std::max(0, random.integer(-6, 12))} * (random.integer(0, 3) == 0 ? 5 : 1);
  c.update_every = std::vector<int>{1, 2, 3, 4, 12}[random.integer(0, 4)];
  c.batches = 12;
  return c;
}

std::string to_text(const ReferenceSpan& span) {
  return std::string(1, span.op) + " of stage " + std::to_string(span.stage) + ", batch " +
         std::to_string(span.batch) + ", loss " + std::to_string(span.loss) + ": " +
         std::to_string(span.start) + ".." + std::to_string(span.end);
}

void check_same(const ReferenceCase& reference, const std::string& engine, std::uint64_t seed) {
  Trial trial = trial_of(reference);
  trial.engine = engine;
  std::vector<ReferenceSpan> expected = run_reference(reference);
  std::sort(expected.begin(), expected.end());
  const std::vector<ReferenceSpan> spans = spans_of(trace(trial));
  CAPTURE(seed);
  CAPTURE(engine);
  REQUIRE(spans.size() == expected.size());
  const auto differing = std::mismatch(spans.begin(), spans.end(), expected.begin());
  const auto ours = differing.first;
  const auto theirs = differing.second;
  INFO(document(trial));
  INFO("engine:    " << (ours == spans.end() ? "" : to_text(*ours)));
  INFO("reference: " << (theirs == expected.end() ? "" : to_text(*theirs)));
  CHECK(ours == spans.end());
}

TEST_CASE("the native engine runs 600 random cases exactly as the reference loop does") {
  for (std::uint64_t seed = 0; seed < 600; ++seed) check_same(random_case(seed), "native", seed);
}

TEST_CASE("the SimGrid engine runs 100 random cases exactly as the reference loop does") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    check_same(random_case(1000 + seed), "simgrid", 1000 + seed);
  }
}

/// Gives each loss an N of its own, often more than there are stages below it.
ReferenceCase case_of_lists(std::uint64_t seed) {
  Random random(33, seed);
  ReferenceCase c = random_case(5000 + seed);
  const int stages = static_cast<int>(c.stages.size());
  for (int loss = 0; loss < stages; ++loss) c.n_of_losses.push_back(random.integer(1, stages));
  c.list = c.in_flight == 1 && c.fused && random.integer(0, 1) == 0;
  c.all_heads = random.integer(0, 1) == 0;
  c.skip_unneeded = !c.all_heads && c.skip_unneeded;
  return c;
}

TEST_CASE("losses that each reach a number of stages of their own run as in the reference loop") {
  int lists = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const ReferenceCase c = case_of_lists(seed);
    lists += c.list ? 1 : 0;
    check_same(c, "native", seed);
    if (seed % 10 == 0) check_same(c, "simgrid", seed);
  }
  CHECK(lists > 50);
}

std::vector<StageTimes> times_of(const Trial& trial) {
  std::vector<StageTimes> times;
  for (const TrialStage& stage : trial.stages) times.push_back(stage.times);
  return times;
}

TEST_CASE("no eager run of unequal stages beats its loops, and most meet them") {
  int met = 0, runs = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(32, seed);
    ReferenceCase c;
    const int stages = random.integer(2, 8);
    c.n_wise = random.integer(1, stages);
    for (int i = 0; i < stages; ++i) c.stages.push_back(random_stage(random, 0));
    c.latency = random.integer(0, 6);
    Trial trial = trial_of(c);
    trial.steps = 60;
    std::vector<Seconds> transfers;
    for (int i = 0; i + 1 < stages; ++i) {
      transfers.push_back(trial.latency + trial.stages[i].output / trial.bandwidth);
    }
    const Seconds bound = std::max(loop_bound(times_of(trial), transfers, c.n_wise),
                                   busiest_stage(times_of(trial), c.n_wise));
    const Metrics metrics = simulate(trial).metrics;
    INFO("seed " << seed << ", K = " << stages << ", N = " << c.n_wise << ": bound "
                 << bound.value() << " s, simulated " << metrics.step_time.value() << " s");
    CHECK(metrics.step_time >= bound * (1 - 1e-9));
    // A local stage waits for no stage above it, so there the bound is met.
    if (c.n_wise == 1) CHECK(close(metrics.step_time.value(), bound.value()));
    ++runs;
    met += metrics.step_time <= bound * 1.005 ? 1 : 0;
  }
  MESSAGE(met << " of " << runs << " random cases come within 0.5% of the loop bound");
  CHECK(met > runs / 2);
}

}  // namespace
}  // namespace interlock::unequal_stages_test
