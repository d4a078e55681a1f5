// Long steps measured by two short ones: what they must agree on with the whole step.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/measure/metric_table.h"
#include "sim/measure/periods.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::long_steps_test {
namespace {

/// A program of one op and one message a micro-batch, which are told by hand, in whole seconds.
Program one_of_each(int micro_batches) {
  return {.micro_batches = micro_batches, .ops = {OpInfo{}}, .channels = {Channel{}}};
}

/// The rhythm of ops every 10 s that last 5 s, with messages every `between` seconds.
int rhythm_of(int micro_batches, int between) {
  const Program program = one_of_each(micro_batches);
  BatchLog log(program);
  for (int b = 0; b < micro_batches; ++b) {
    log.add(Span{.start = Seconds(10 * b), .end = Seconds(10 * b + 5), .micro_batch = b});
    const Seconds start(between * b + 5);
    log.add(Transfer{.sent = Seconds(10 * b + 5),
                     .start = start,
                     .end = start + Seconds(between),
                     .arrival = start + Seconds(between),
                     .micro_batch = b});
  }
  return log.rhythm(0, 1, 1);
}

/// Gives the stages of `chain` times, and bytes, of which stashes have up to `stash` thousand.
void draw_costs(Random& random, int stash, TestChain& chain) {
  for (StageCost& cost : chain.costs) {
    for (OpCost* op : {&cost.forward, &cost.backward_input, &cost.backward_weight}) {
      op->time = Seconds(random.integer(1, 4));
    }
    cost.output = Bytes(1000 * random.integer(0, 3));
    cost.stash = Bytes(1000 * random.integer(0, stash));
    cost.workspace = Bytes(1000 * random.integer(0, 3));
  }
}

TEST_CASE("ops in a rhythm have none while a wire falls behind, which an op will wait for") {
  CHECK(rhythm_of(30, 10) == 1);
  CHECK(rhythm_of(30, 11) == 0);
}

struct BothWays {
  Metrics whole, skipped;
};

/// Checks every metric of the table, so that none is left behind when the others grow.
void check_metrics(const BothWays& both) {
  for (const MetricRow& row : step_metrics()) {
    const std::string key = row.key;
    if (key == "wall_time_s" || key == "skipped_tasks") continue;  // these differ on purpose
    INFO(key);
    const auto whole = number_of(row, both.whole), skipped = number_of(row, both.skipped);
    REQUIRE(whole.has_value() == skipped.has_value());
    if (whole) CHECK(*skipped == doctest::Approx(*whole).epsilon(1e-9));
  }
}

/// Measures `chain` with all its micro-batches, and with few of them.
BothWays both_ways(const TestChain& chain, const MeasureInputs& asked) {
  MeasureInputs inputs = asked;
  inputs.devices = 3;
  inputs.samples_per_step = chain.micro_batches;
  inputs.peak = FlopsPerSecond(1);
  const auto& ranks = chain.rank_of_stage;
  inputs.memory_capacity.assign(1 + *std::max_element(ranks.begin(), ranks.end()), Bytes(1e9));
  BothWays both;
  both.whole = measure(programs_of(chain), inputs, false).metrics;
  const ScheduleEntry& entry = *chain.policy.kind;
  const int stages = static_cast<int>(chain.rank_of_stage.size()) / chain.copies;
  inputs.long_step = {.micro_batches = chain.micro_batches,
                      .period = entry.period({chain.cluster.devices, stages, chain.micro_batches}),
                      .lower = [&](int few) {
                        TestChain shorter = chain;
                        shorter.micro_batches = few;
                        return programs_of(shorter);
                      }};
  both.skipped = measure(programs_of(chain), inputs, false).metrics;
  CHECK(both.whole.skipped_tasks == 0);
  CHECK(both.skipped.tasks == both.whole.tasks);
  CHECK(both.skipped.step_time == both.whole.step_time);
  CHECK(both.skipped.makespan == both.whole.makespan);
  check_metrics(both);
  return both;
}

TEST_CASE(
    "uneven stages and busy wires: every family with a loop has the figures of all its turns") {
  int skipped_runs = 0, runs = 0;
  for (const std::string_view kind : families()) {
    if (schedule_named(kind).period == nullptr) continue;
    for (std::uint64_t seed = 0; seed < 2; ++seed, ++runs) {
      Random random(222, seed * 100 + static_cast<std::uint64_t>(runs));
      TestChain chain = make_laid_chain(random.integer(1, 2) * 2, kind);
      const int of_copy = static_cast<int>(chain.costs.size()) / chain.copies;
      for (int i = 0; i < of_copy; ++i) {
        const auto bytes = [&](int most) { return Bytes(1000 * random.integer(0, most)); };
        StageCost cost = chain.costs[i];
        for (OpCost* op : {&cost.forward, &cost.backward_input, &cost.backward_weight}) {
          op->time = Seconds(random.integer(1, 5));
        }
        cost.output = bytes(i % 3 == 0 ? 9 : 1);
        cost.stash = bytes(9);
        cost.workspace = bytes(3);
        for (int copy = 0; copy < chain.copies; ++copy) chain.costs[copy * of_copy + i] = cost;
      }
      chain.micro_batches = 600'000 / (2 * static_cast<int>(chain.costs.size())) / 4 * 4;
      INFO(describe(chain));
      const auto [whole, skipped] = both_ways(chain, {.steps = 1});
      skipped_runs += skipped.skipped_tasks > 0 ? 1 : 0;
      for (std::size_t d = 0; d < whole.devices.size(); ++d) {
        CHECK(skipped.devices[d].memory == whole.devices[d].memory);
        CHECK(skipped.devices[d].peak_time == whole.devices[d].peak_time);
      }
    }
  }
  CHECK(skipped_runs > runs / 2);
}

TEST_CASE("the fewest steps have the figures of many, in every family") {
  int fewer = 0;
  for (const std::string_view kind : families()) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      Random random(223, seed);
      TestChain chain = make_laid_chain(4, kind);
      chain.micro_batches = 8;
      draw_costs(random, 9, chain);
      INFO(describe(chain));
      const Metrics all = measure(programs_of(chain), {.steps = 4}, false).metrics;
      const Metrics few =
          measure(programs_of(chain), {.steps = 4, .fewest_steps = true}, false).metrics;
      fewer += few.measured_steps < all.measured_steps ? 1 : 0;
      CHECK(few.step_time == all.step_time);
      // After a fill a step may lack what later ones do meanwhile.
      if (all.fill_steps > 0) CHECK(few.measured_steps == all.measured_steps);
      for (const MetricRow& row : step_metrics()) {
        const std::string key = row.key;
        const bool of_run = key == "wall_time_s" || key == "tasks" || key == "makespan_s" ||
                            key == "measured_steps" || key == "window_end_s";
        if (of_run) continue;
        INFO(key);
        const auto whole = number_of(row, all), part = number_of(row, few);
        REQUIRE(whole.has_value() == part.has_value());
        if (whole) CHECK(*part == doctest::Approx(*whole).epsilon(1e-12));
      }
      for (std::size_t d = 0; d < all.devices.size(); ++d) {
        CHECK(few.devices[d].peak_memory == all.devices[d].peak_memory);
        CHECK(few.devices[d].memory == all.devices[d].memory);
      }
    }
  }
  MESSAGE(fewer << " measured by one step");
  CHECK(fewer >= 10);
}

TEST_CASE("a peak at the end of a long step is at its end, though few micro-batches are run") {
  int late = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Random random(221, seed);
    TestChain chain = make_laid_chain(2, "zb-v");
    draw_costs(random, 3, chain);
    chain.micro_batches = 32'000;
    INFO("seed " << seed);
    const BothWays both = both_ways(chain, {.steps = 1});
    const Metrics &whole = both.whole, &skipped = both.skipped;
    CHECK(skipped.skipped_tasks > 0);
    for (std::size_t d = 0; d < whole.devices.size(); ++d) {
      INFO("rank " << d << " peaks at " << whole.devices[d].peak_time.value());
      CHECK(skipped.devices[d].peak_memory == whole.devices[d].peak_memory);
      CHECK(skipped.devices[d].peak_time == whole.devices[d].peak_time);
      late += whole.devices[d].peak_time > 0.5 * whole.step_time ? 1 : 0;
    }
  }
  CHECK(late > 0);
}

TEST_CASE("a run whose steps do not repeat is measured whole") {
  // Zero bubble H2 leaves no bubble, so that all ranks work without a pause; the first takes 1 s
  // less for each step, until it has no more than that to spare, thousands of steps later.
  TestChain chain = make_chain(std::vector<ChainStage>(3, {7000, 6000, 9000, 0, 3}), "zb-h2");
  chain.costs[0].update.time = Seconds(2);
  chain.micro_batches = 16'000;
  const auto [whole, skipped] = both_ways(chain, {.steps = 3});
  CHECK_FALSE(whole.steady);
  CHECK(skipped.skipped_tasks == 0);
  CHECK(skipped.fill_steps == whole.fill_steps);
}

}  // namespace
}  // namespace interlock::long_steps_test
