// Schedules that are found: against every order of small cases, the catalogue, and eager training.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "tests/support/skipped.h"
#include "tests/validate/support/shortest_step.h"
#include "tests/validate/support/trial.h"
#include "validate/exact/exact_schedule.h"

namespace interlock::auto_schedule_test {
namespace {

constexpr double kUnit = 1000;  // bytes that one stage keeps of a micro-batch

/// `members`: of the schedule, besides its kind.
std::string searching(double memory, const std::string& members = "") {
  return R"({"kind": "auto", "memory": ")" + std::to_string(static_cast<int>(memory)) + " B\"" +
         members + "}";
}

double peak(const Metrics& metrics) {
  double most = 0;
  for (const DeviceMetrics& device : metrics.devices) {
    most = std::max(most, device.peak_memory.value());
  }
  return most;
}

Trial global_trial(const std::vector<SmallStage>& stages, int micro_batches, double transfer) {
  Trial trial;
  for (const SmallStage& stage : stages) {
    trial.stages.push_back({.times = {.forward = Seconds(stage.forward),
                                      .backward_input = Seconds(stage.input),
                                      .backward_weight = Seconds(stage.weight)},
                            .stash = Bytes(kUnit)});
  }
  trial.strategy = "\"global\"";
  trial.latency = Seconds(transfer);
  trial.micro_batches = micro_batches;
  return trial;
}

TEST_CASE("with a barrier, the order that is found is the best of all, on small pipelines") {
  int cases = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(5, seed);
    std::vector<SmallStage> stages(random.integer(1, 3));
    const int micro_batches = random.integer(1, 3), held = random.integer(1, micro_batches);
    const double transfer = 0.5 * random.integer(0, 2);
    for (SmallStage& stage : stages) {
      stage = {1.0 * random.integer(1, 3), 1.0 * random.integer(1, 3), 1.0 * random.integer(1, 3),
               held};
    }
    const double best = shortest_step(stages, micro_batches, transfer);
    Trial trial = global_trial(stages, micro_batches, transfer);
    trial.schedule = searching(held * kUnit, R"(, "optimizer_sync": "barrier")");
    const Metrics metrics = simulate(trial).metrics;
    INFO("seed " << seed << ": " << stages.size() << " stages, " << micro_batches
                 << " micro-batches, " << held << " held; shortest of all orders " << best);
    CHECK(close(metrics.step_time.value(), best));
    CHECK(peak(metrics) <= held * kUnit);
    ++cases;
  }
  MESSAGE(cases << " pipelines of up to 3 stages and 3 micro-batches");
}

TEST_CASE("the mixed-integer program agrees with looking at every order, where CBC is installed") {
  if (!has_exact_solver()) {
    tell_skipped("schedules against proved optima", "coinor-cbc");
    return;
  }
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Random random(6, seed);
    std::vector<SmallStage> small(random.integer(1, 3));
    const int micro_batches = random.integer(1, 3), held = random.integer(0, micro_batches);
    ExactInputs exact{.transfer = 0.5 * random.integer(0, 2), .micro_batches = micro_batches};
    for (SmallStage& stage : small) {
      stage = {1.0 * random.integer(1, 3), 1.0 * random.integer(1, 3), 1.0 * random.integer(1, 3),
               held};
      exact.stages.push_back({stage.forward, stage.input, stage.weight, held});
      exact.at_most += micro_batches * (stage.forward + stage.input + stage.weight + 2);
    }
    INFO("seed " << seed);
    const auto result = solve_exact(exact);
    REQUIRE(result);
    CHECK(std::abs(result->makespan - shortest_step(small, micro_batches, exact.transfer)) < 1e-6);
    CHECK(result->bound == result->makespan);
  }
}

TEST_CASE("what is found for 3 stages and 4 micro-batches is as short as the proved optimum") {
  if (!has_exact_solver()) {
    tell_skipped("schedules against proved optima", "coinor-cbc");
    return;
  }
  for (const int held : {2, 3, 4}) {
    const std::vector<SmallStage> stages(3, {1, 1.25, 0.75, held});
    Trial trial = global_trial(stages, 4, 0.125);
    trial.schedule = searching(held * kUnit, R"(, "optimizer_sync": "barrier")");
    const double found = simulate(trial).metrics.step_time.value();
    const auto proved = solve_exact({.stages = {3, {1, 1.25, 0.75, held}},
                                     .transfer = 0.125,
                                     .micro_batches = 4,
                                     .at_most = found});
    REQUIRE(proved);
    MESSAGE(held << " held: found " << found << ", proved " << proved->makespan << ", gap "
                 << found / proved->makespan - 1);
    CHECK(std::abs(found - proved->makespan) < 1e-6);
  }
}

TEST_CASE("the order that is found is as fast as every schedule of the catalogue that fits") {
  for (const bool v : {false, true}) {
    const std::vector<std::string> rivals =
        v ? std::vector<std::string>{"zb-v", "dualpipe-v", "hanayo", "gpipe", "1f1b"}
          : std::vector<std::string>{"1f1b", "gpipe", "eager-1f1b", "zb-h1", "zb-h2", "naive"};
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      Random random(v ? 7 : 8, seed);
      const int ranks = 4, micro_batches = random.integer(8, 10);
      std::vector<SmallStage> stages(v ? 2 * ranks : ranks);
      const double skew = random.uniform();
      for (SmallStage& stage : stages) {
        stage = {1 + skew * random.uniform(), 1 + skew * random.uniform(), 0.5 + random.uniform()};
      }
      Trial trial = global_trial(stages, micro_batches, 0.2 * random.uniform());
      if (v) trial.placement = {0, 1, 2, 3, 3, 2, 1, 0};
      const double memory = (v ? 2 : 1) * random.integer(1, 9) * kUnit;
      trial.schedule = searching(memory, R"(, "evaluations": 120)");
      const Metrics found = simulate(trial).metrics;
      INFO("seed " << seed << ", memory " << memory);
      CHECK(peak(found) <= memory);
      for (const std::string& rival : rivals) {
        trial.schedule = in_quotes(rival);
        const Metrics metrics = simulate(trial).metrics;
        if (peak(metrics) > memory) continue;
        INFO(rival << " takes " << metrics.step_time.value());
        CHECK(found.step_time.value() <= metrics.step_time.value() * (1 + 1e-9));
      }
    }
  }
}

TEST_CASE("the same seed finds the same order") {
  Trial trial = global_trial(std::vector<SmallStage>(4, {1, 1.3, 0.6}), 8, 0.1);
  trial.schedule = searching(5 * kUnit);
  const Traced first = trace(trial), second = trace(trial);
  REQUIRE(first.log.spans.size() == second.log.spans.size());
  for (std::size_t i = 0; i < first.log.spans.size(); ++i) {
    CHECK(first.log.spans[i].start == second.log.spans[i].start);
    CHECK(first.log.spans[i].micro_batch == second.log.spans[i].micro_batch);
  }
}

TEST_CASE("a memory that holds one micro-batch leaves one order: one after the other") {
  // 3 stages, F + I + W = 3: each micro-batch goes down and up, no op hides its last W.
  Trial trial = global_trial(std::vector<SmallStage>(3, {1, 1, 1}), 4, 0);
  trial.schedule = searching(kUnit);
  const Metrics metrics = simulate(trial).metrics;
  CHECK(peak(metrics) == kUnit);
  const double best = shortest_step(std::vector<SmallStage>(3, {1, 1, 1, 1}), 4, 0);
  INFO("shortest of all orders " << best);
  CHECK(metrics.step_time.value() <= best * (1 + 1e-9));
}

TEST_CASE("a memory that nothing fits into is refused with what the leanest order takes") {
  Trial trial = global_trial(std::vector<SmallStage>(3, {1, 1, 1}), 4, 0);
  trial.schedule = searching(kUnit / 2);
  std::string said;
  try {
    simulate(trial);
  } catch (const Error& error) {
    said = error.what();
  }
  CHECK(said ==
        "trial: trial: /training/schedule: no order of work was found that fits into 500 B a "
        "device; expected \"memory\" of at least 1000 B, which the leanest one takes");
}

TEST_CASE("on shared links the last word has a run with contention") {
  Trial trial = global_trial(std::vector<SmallStage>(4, {1, 1, 1}), 8, 0);
  for (TrialStage& stage : trial.stages) stage.output = Bytes(3e8);
  // Both messages of a stage in the middle leave through its one port.
  trial.cluster = R"({"kind": "machine", "device": "a100-80g", "devices_per_node": 4,
      "port": {"latency": "0 s", "bandwidth": "1 GB/s"}})";
  trial.engine = "auto";
  trial.schedule = R"({"kind": "auto", "evaluations": 60})";
  const double found = step_time(trial);
  for (const char* rival : {"\"1f1b\"", "\"gpipe\"", "\"zb-h1\"", "\"zb-h2\""}) {
    trial.schedule = rival;
    INFO(rival);
    CHECK(found <= simulate(trial).metrics.step_time.value() * (1 + 1e-9));
  }
}

TEST_CASE("local and interlocking training is found to be no slower than eager") {
  int cases = 0, faster = 0;
  double most = 1;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    Random random(9, seed);
    const int in_flight = random.integer(1, 3), every = random.integer(1, 2);
    Trial trial;
    double busiest = 0;
    const int n = random.integer(1, 4);
    for (int stage = 0; stage < 4; ++stage) {
      const auto draw = [&] { return Seconds(0.5 + random.uniform()); };
      const StageTimes times = {draw(), draw(), draw(), draw(), Seconds(0.1)};
      trial.stages.push_back({.times = times, .stash = Bytes(kUnit)});
      const Seconds once = times.forward + times.backward_input + times.backward_weight;
      busiest = std::max(busiest, (once + times.update / (2.0 * every)).value());
    }
    trial.strategy = n == 1 ? "\"local\"" : n_wise(n);
    trial.micro_batches = random.integer(0, 1) == 0 ? 4 : 16;
    trial.latency = Seconds(0.1);
    const std::string limits = R"(, "in_flight": )" + std::to_string(in_flight) +
                               R"(, "update_every": )" + std::to_string(2 * every);
    trial.schedule = R"({"kind": "auto", "evaluations": 150)" + limits + "}";
    const Metrics metrics = simulate(trial).metrics;
    const double found = metrics.step_time.value();
    INFO("seed " << seed << ", " << trial.strategy << limits << ", M " << trial.micro_batches);
    CHECK(peak(metrics) <= in_flight * kUnit);
    if (metrics.steady) CHECK(found >= trial.micro_batches * busiest * (1 - 1e-9));
    double eager = INFINITY;
    for (const char* backward : {"fused", "split"}) {
      trial.schedule =
          R"({"kind": "eager", "backward": ")" + std::string(backward) + "\"" + limits + "}";
      eager = std::min(eager, simulate(trial).metrics.step_time.value());
    }
    CHECK(found <= eager * (1 + 1e-9));
    ++cases;
    faster += found < eager * (1 - 1e-9) ? 1 : 0;
    most = std::max(most, eager / found);
  }
  MESSAGE(faster << " of " << cases << " are faster than eager, at most " << most << " times");
}

TEST_CASE("equal local stages with two in flight are found to be busy all the time") {
  Trial trial;
  const StageTimes times = {Seconds(1), Seconds(1), Seconds(1), Seconds(0.5), Seconds(0.25)};
  trial.stages = equal_stages(4, times);
  trial.micro_batches = 4;
  trial.schedule = R"({"kind": "auto", "in_flight": 2, "update_every": 1})";
  // F + I + W + head + update; the last stage has no head.
  CHECK(close(step_time(trial), 4 * (1 + 1 + 1 + 0.5 + 0.25)));
}

}  // namespace
}  // namespace interlock::auto_schedule_test
