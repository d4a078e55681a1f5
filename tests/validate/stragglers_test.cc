// Stragglers and jitter against event lists, closed forms and order statistics.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "scenarios/plan/lower_plan.h"
#include "tests/validate/support/trial.h"

namespace interlock::stragglers_test {
namespace {

/// 1F1B by relaxation: every op starts when the one before it on its stage and the one that it
/// needs are done. No messages, no engine.
double one_f_one_b_step(const std::vector<double>& forward, const std::vector<double>& backward,
                        int micro_batches) {
  const int stages = static_cast<int>(forward.size());
  std::vector<std::vector<double>> done_f(stages, std::vector<double>(micro_batches, 0)),
      done_b = done_f;
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = 0; s < stages; ++s) {
      double free = 0;
      const auto run = [&](double& done, double after, double duration) {
        free = std::max(free, after) + duration;
        moved = moved || done != free;
        done = free;
      };
      const int warm_up = std::min(stages - s - 1, micro_batches);
      for (int i = 0; i < warm_up + micro_batches; ++i) {
        if (i < micro_batches) run(done_f[s][i], s > 0 ? done_f[s - 1][i] : 0, forward[s]);
        const int b = i - warm_up;
        if (b < 0) continue;
        run(done_b[s][b], s + 1 < stages ? done_b[s + 1][b] : done_f[s][b], backward[s]);
      }
    }
  }
  return done_b[0][micro_batches - 1];
}

VariationConditions straggling(int rank, double slowdown) {
  return {.stragglers = {{.devices = {SlowDevices::Of::Rank, rank, slowdown}}}};
}

double step_time_of(const Trial& trial, const VariationConditions& variation) {
  Question scenario = load(trial);
  scenario.variation = variation;
  return run_scenario(scenario, false).measurement.metrics.step_time.value();
}

Trial equal_trial(int stages, const std::string& strategy, const std::string& schedule) {
  Trial trial;
  trial.stages = equal_stages(stages, {Seconds(3e-3), Seconds(2e-3), Seconds(2e-3)});
  trial.strategy = strategy;
  trial.schedule = schedule;
  return trial;
}

TEST_CASE("1F1B with a straggler takes what an event list says") {
  for (int stages = 1; stages <= 5; ++stages) {
    for (int micro_batches = 1; micro_batches <= 7; ++micro_batches) {
      for (int slow = 0; slow < stages; ++slow) {
        for (const double slowdown : {1.25, 3.0}) {
          Trial trial = equal_trial(stages, "\"global\"", "\"1f1b\"");
          trial.micro_batches = micro_batches;
          std::vector<double> forward(stages, 3e-3), backward(stages, 4e-3);
          forward[slow] *= slowdown;
          backward[slow] *= slowdown;
          const double expected = one_f_one_b_step(forward, backward, micro_batches);
          const double bound = 7e-3 * (slow + micro_batches * slowdown);
          const double step = step_time_of(trial, straggling(slow, slowdown));
          INFO(stages << " stages, " << micro_batches << " micro-batches, stage " << slow << " x"
                      << slowdown << ": event list " << expected
                      << ", (f + B) of those before it + m k (f + B) = " << bound << ", got "
                      << step);
          CHECK(close(step, expected));
          CHECK(step >= bound * (1 - 1e-12));
        }
      }
    }
  }
}

TEST_CASE("local and interlocking training go at the pace of the slowest loop") {
  for (int n = 1; n <= 5; ++n) {
    for (int slow = 0; slow < 5; ++slow) {
      Trial trial = equal_trial(5, n_wise(n), R"({"kind": "eager", "queue": {"buffered": 2}})");
      for (TrialStage& stage : trial.stages) stage.times.head = Seconds(1e-3);
      std::vector<StageTimes> times;
      for (int i = 0; i < 5; ++i) {
        StageTimes t = trial.stages[i].times;
        const double k = i == slow ? 2 : 1;
        times.push_back(
            {t.forward * k, t.backward_input * k, t.backward_weight * k, t.head * k, t.update * k});
      }
      const double bound = loop_bound(times, std::vector<Seconds>(4), n).value();
      const double step = step_time_of(trial, straggling(slow, 2));
      INFO(n << "-wise, stage " << slow << " twice as slow: bound " << bound << ", got " << step);
      CHECK(step >= bound * (1 - 1e-9));
      if (n == 1) CHECK(close(step, bound));
      CHECK(step <= bound * 1.25);
    }
  }
}

/// E of the largest of `count` factors of distribution function `below`: the integral of
/// 1 - below(x)^count over x >= 0, by Simpson's rule.
double expected_largest(int count, const std::function<double(double)>& below) {
  constexpr int kParts = 40'000;
  constexpr double kEnd = 20;
  double sum = 0;
  for (int i = 0; i <= kParts; ++i) {
    const double weight = i == 0 || i == kParts ? 1 : i % 2 == 1 ? 4 : 2;
    sum += weight * (1 - std::pow(below(kEnd * i / kParts), count));
  }
  return sum * kEnd / kParts / 3;
}

double normal_below(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

constexpr int kSeeds = 100;

/// Equal replicas of one stage, a micro-batch of 10 ms a step, gradients added up after it.
ScenarioResult run_of_replicas(int replicas, const Jitter& jitter) {
  const std::string text =
      R"({"model": {"kind": "profile", "modules": [{"forward": "4 ms", "backward_input": "3 ms",
            "backward_weight": "3 ms", "parameters": "1 MB"}]},
          "cluster": {"kind": "uniform", "devices": )" +
      std::to_string(replicas) +
      R"(, "memory": "80 GiB", "link": {"bandwidth": "10 GB/s"}},
          "parallel": {"data": )" +
      std::to_string(replicas) +
      R"(, "overlap_gradients": false}, "training": {"strategy": "global", "steps": 60,
            "global_batch_size": )" +
      std::to_string(replicas) + "}}";
  Question scenario = load_questions(parse_json(text, "replicas.json")).front();
  scenario.variation = VariationConditions{.jitter = jitter, .seeds = kSeeds};
  return run_scenario(scenario, false);
}

void check_largest(int replicas, const Jitter& jitter, double largest) {
  const ScenarioResult result = run_of_replicas(replicas, jitter);
  REQUIRE(result.varied);
  const double compute = 10e-3;
  const double added_up = result.varied->undisturbed_step_time.value() - compute;
  const double expected = compute * largest + added_up;
  const Spread& step = result.varied->step_time;
  const double error = step.deviation / std::sqrt(kSeeds);
  INFO(replicas << " replicas, spread " << jitter.spread << ": E[largest] = " << largest
                << ", step = 10 ms x that + " << added_up << " = " << expected << ", simulated "
                << step.mean << " +- " << error);
  CHECK(std::abs(step.mean - expected) < 4 * error);
  CHECK(error < 0.02 * expected);
}

TEST_CASE("a step of jittered replicas takes as long as the slowest is expected to") {
  for (const int d : {2, 4, 16}) {
    const Jitter uniform{JitterShape::Uniform, JitterScope::Step, 0.3};
    // The largest of d numbers uniform in [-1, 1] is (d - 1) / (d + 1) on average.
    check_largest(d, uniform, 1 + std::sqrt(3.0) * 0.3 * (d - 1) / (d + 1));
    const Jitter normal{JitterShape::Normal, JitterScope::Step, 0.1};
    check_largest(d, normal,
                  expected_largest(d, [](double x) { return normal_below((x - 1) / 0.1); }));
    const Jitter lognormal{JitterShape::Lognormal, JitterScope::Step, 0.5};
    const double variance = std::log(1 + 0.25);
    check_largest(d, lognormal, expected_largest(d, [&](double x) {
                    if (x <= 0) return 0.0;
                    return normal_below((std::log(x) + variance / 2) / std::sqrt(variance));
                  }));
    // Gamma of spread 1 is exponential: the largest of d is 1 + 1/2 + ... + 1/d on average.
    double harmonic = 0;
    for (int i = 1; i <= d; ++i) harmonic += 1.0 / i;
    check_largest(d, {JitterShape::Gamma, JitterScope::Step, 1}, harmonic);
  }
}

TEST_CASE("where everything comes one after the other, jitter changes no mean") {
  Trial trial = equal_trial(3, "\"global\"", "\"naive\"");
  for (TrialStage& stage : trial.stages) stage.output = Bytes(2e6);  // 2 ms on a wire of 1 GB/s
  trial.steps = 40;
  Question scenario = load(trial);
  scenario.variation =
      VariationConditions{.jitter = {.spread = 0.2},
                          .link_jitter = {.shape = JitterShape::Gamma, .spread = 1},
                          .seeds = 50};
  const ScenarioResult result = run_scenario(scenario, false);
  const Spread& step = result.varied->step_time;
  const double expected = 3 * 7e-3 + 4 * 2e-3, error = step.deviation / std::sqrt(50.0);
  INFO("3 (f + B) + 4 c = " << expected << ", simulated " << step.mean << " +- " << error);
  CHECK(std::abs(step.mean - expected) < 4 * error);
  // The variance of one step: 3 forwards of 3 ms and 3 backwards of 4 ms, spread 0.2, and 4 c of
  // spread 1.
  const double variance =
      3 * std::pow(0.2 * 3e-3, 2) + 3 * std::pow(0.2 * 4e-3, 2) + 4 * std::pow(2e-3, 2);
  const double deviation = std::sqrt(variance / 40);
  INFO("deviation of a mean of 40 steps " << deviation << ", simulated " << step.deviation);
  CHECK(step.deviation / deviation > 1 - 4 / std::sqrt(100.0));
  CHECK(step.deviation / deviation < 1 + 4 / std::sqrt(100.0));
  CHECK(result.measurement.metrics.step_time.value() == step.mean);
}

TEST_CASE("a straggler of some steps slows those alone") {
  const Trial trial = equal_trial(3, "\"global\"", "\"naive\"");  // 8 steps of 21 ms
  VariationConditions variation = straggling(1, 3);
  variation.stragglers[0].first_step = 2;
  variation.stragglers[0].last_step = 4;
  const double expected = 21e-3 + 3.0 / 8 * 2 * 7e-3;
  CHECK(close(step_time_of(trial, variation), expected));
  variation.stragglers[0].first_step.reset();
  CHECK(close(step_time_of(trial, variation), 21e-3 + 4.0 / 8 * 2 * 7e-3));
}

TEST_CASE("slower is never faster where orders are fixed") {
  for (const char* strategy : {"\"global\"", "\"local\"", "\"pairwise\""}) {
    for (const char* schedule : {"\"1f1b\"", "\"gpipe\"", "\"naive\"", "\"list\"", "\"eager\""}) {
      Trial trial = equal_trial(4, strategy, schedule);
      trial.micro_batches = 3;
      try {
        if (chooses_order(lower_plan(make_plan(load(trial)), 2))) continue;
      } catch (const Error&) {  // a schedule that the strategy cannot have
        continue;
      }
      for (int rank = 0; rank < 4; ++rank) {
        double before = 0;
        for (const double slowdown : {1.0, 1.01, 1.5, 2.0, 7.0}) {
          const double step = step_time_of(trial, straggling(rank, slowdown));
          INFO(strategy << " " << schedule << ", rank " << rank << " x" << slowdown);
          CHECK(step >= before * (1 - 1e-12));
          before = step;
        }
      }
    }
  }
}

/// Four equal stages, messages of `transfer` ms, with the links between the middle two `slow` times
/// slower.
double step_on_slow_links(const char* strategy, const char* schedule, double transfer,
                          double slow) {
  Trial trial = equal_trial(4, strategy, schedule);
  for (TrialStage& stage : trial.stages) stage.output = Bytes(transfer * 1e6);
  trial.micro_batches = 8;
  Question scenario = load(trial);
  scenario.variation = VariationConditions{.slow_links = {{1, 2, slow}, {2, 1, slow}}};
  scenario.cluster = with_slow_links(std::move(scenario.cluster), scenario.variation);
  return run_scenario(scenario, false).measurement.metrics.step_time.value();
}

TEST_CASE("local training hides a slow link that global training pays for") {
  const char* queued = R"({"kind": "eager", "queue": {"buffered": 4}})";
  const double local = step_on_slow_links("\"local\"", queued, 1, 1);
  CHECK(close(local, 8 * 7e-3));
  // 6 ms over a link of which 7 are free between two activations; 8 ms set the pace.
  CHECK(close(step_on_slow_links("\"local\"", queued, 1, 6), local));
  CHECK(close(step_on_slow_links("\"local\"", queued, 1, 8), 8 * 8e-3));
  // Global training: the first gradient of GPipe comes back over both links.
  const double global = step_on_slow_links("\"global\"", "\"gpipe\"", 1, 1);
  const double slower = step_on_slow_links("\"global\"", "\"gpipe\"", 1, 3);
  INFO("gpipe: (M + K - 1)(f + B) + 2(K - 1)c = " << 11 * 7e-3 + 6e-3);
  CHECK(close(global, 11 * 7e-3 + 6e-3));
  CHECK(close(slower, 11 * 7e-3 + 6e-3 + 2 * 2e-3));
}

TEST_CASE("equal seeds give equal results, other seeds others") {
  const Trial trial = equal_trial(3, "\"local\"", "\"eager\"");
  const VariationConditions variation{.jitter = {.spread = 0.1}, .seeds = 3};
  const double once = step_time_of(trial, variation);
  CHECK(step_time_of(trial, variation) == once);
  Question other = load(trial);
  other.variation = variation;
  other.simulation.seed = 99;
  CHECK(run_scenario(other, false).measurement.metrics.step_time.value() != once);
}

}  // namespace
}  // namespace interlock::stragglers_test
