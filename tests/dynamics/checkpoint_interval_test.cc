// Checkpoint intervals: published figures, the exact optimum by Lambert's W, and simulated runs.
// SPDX-License-Identifier: Apache-2.0
#include "sim/runs/checkpoint_interval.h"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/runs/goodput.h"

namespace interlock::checkpoint_interval_test {
namespace {

constexpr double kMinute = 60;

/// Costs in minutes.
CheckpointCosts costs_of(double write, double restart, double mean) {
  return {Seconds(write * kMinute), Seconds(restart * kMinute), Seconds(mean * kMinute)};
}

/// The principal branch for -1/e <= y < 0, by bisection of w e^w = y over -1 <= w <= 0.
double lambert_w(double y) {
  double low = -1, high = 0;
  for (int i = 0; i < 200; ++i) {
    const double w = (low + high) / 2;
    (w * std::exp(w) < y ? low : high) = w;
  }
  return (low + high) / 2;
}

TEST_CASE("Daly's intervals are those of his figures 3 to 5") {
  // Daly 2006: R = 10 min, delta = 5 min; M = 24 h, 6 h, 15 min give 117, 57 and 9.1 min.
  CHECK(std::round(daly_interval(costs_of(5, 10, 24 * 60)) / Seconds(kMinute)) == 117);
  CHECK(std::round(daly_interval(costs_of(5, 10, 6 * 60)) / Seconds(kMinute)) == 57);
  CHECK(std::round(daly_interval(costs_of(5, 10, 15)) / Seconds(kMinute) * 10) == 91);
  CHECK(daly_interval(costs_of(30, 10, 15)) == Seconds(15 * kMinute));  // delta >= 2 M
}

TEST_CASE("Young's interval is sqrt(2 delta M)") {
  CHECK(young_interval(costs_of(5, 10, 1000)) / Seconds(kMinute) == doctest::Approx(100));
}

TEST_CASE("the optimum is the one of Lambert's W") {
  // d/dx of (e^(x + d) - 1) / x vanishes where (x - 1) e^(x - 1) = -e^(-d - 1), x = tau / M and
  // d = delta / M, so that tau = M (1 + W(-e^(-d - 1))).
  for (const double mean : {6.0, 15.0, 360.0, 1440.0, 1e6}) {
    const CheckpointCosts costs = costs_of(5, 10, mean);
    const double exact = mean * (1 + lambert_w(-std::exp(-5 / mean - 1)));
    INFO("M = " << mean << " min: tau = " << exact << " min");
    CHECK(optimal_interval(costs) / Seconds(kMinute) == doctest::Approx(exact).epsilon(1e-6));
    // Daly's form is a perturbation in sqrt(delta / 2M): the nearer the smaller that is.
    if (mean < 360) continue;
    CHECK(daly_interval(costs) / Seconds(kMinute) == doctest::Approx(exact).epsilon(1e-3));
  }
  CHECK(optimal_interval(costs_of(0, 10, 100)) == Seconds(0));
}

TEST_CASE("whole steps of the least expected time lie beside the optimum") {
  for (const double mean : {10.0, 60.0, 500.0, 1440.0}) {
    const CheckpointCosts costs = costs_of(5, 10, mean);
    std::int64_t best = 1;  // by trying them all
    const auto cost = [&](std::int64_t steps) {
      return expected_run_time(Seconds(1), Seconds(180.0 * static_cast<double>(steps)), costs);
    };
    for (std::int64_t steps = 2; steps < 200; ++steps) {
      if (cost(steps) < cost(best)) best = steps;
    }
    CHECK(optimal_interval_steps(Seconds(180), costs) == best);
  }
  CHECK(optimal_interval_steps(Seconds(1e6), costs_of(5, 10, 60)) == 1);
}

/// Training of `hours` with a checkpoint every `interval` steps of a minute; one device whose lives
/// are exponential. Its failures are a Poisson process, as the closed form has it.
RunPlan plan_of(const CheckpointCosts& costs, int hours, int interval) {
  RunPlan plan{
      .steps = std::int64_t{60} * hours, .step_time = Seconds(kMinute), .reload = costs.restart};
  plan.checkpoint = {.interval = interval, .write = costs.write};
  plan.failures = {.kinds = {{costs.mean_time_between_failures, 1, 1}}, .replacement = Seconds(0)};
  return plan;
}

TEST_CASE("simulated runs take the expected time, and least of it at the optimum") {
  constexpr int kSeeds = 400;
  for (const double mean : {360.0, 60.0}) {
    const CheckpointCosts costs = costs_of(5, 10, mean);
    const double optimum = optimal_interval(costs) / Seconds(kMinute);
    std::vector<double> simulated;
    for (const double factor : {0.25, 0.5, 1.0, 2.0, 4.0}) {
      const int interval = static_cast<int>(std::lround(optimum * factor));
      const int hours = interval * 5;  // 300 whole intervals
      const RunStatistics runs = goodput_over_seeds(plan_of(costs, hours, interval), 1, kSeeds);
      const double work = hours * 3600.0;
      const double expected =
          expected_run_time(Seconds(work), Seconds(interval * kMinute), costs) / Seconds(1);
      const double error = runs.wall.deviation / std::sqrt(kSeeds);
      INFO("M = " << mean << " min, every " << interval << " min: " << runs.wall.mean / work
                  << " of the work, expected " << expected / work << " +- " << error / work);
      CHECK(std::abs(runs.wall.mean - expected) < 4 * error);
      simulated.push_back(runs.wall.mean / work);
    }
    CHECK(simulated[2] < simulated[1]);
    CHECK(simulated[2] < simulated[3]);
    CHECK(simulated[1] < simulated[0]);
    CHECK(simulated[3] < simulated[4]);
  }
}

TEST_CASE("many parts of many kinds fail like one at the sum of their rates") {
  // 1 / 60 min = 30 / 3600 min + 2 / 240 min.
  const CheckpointCosts costs = costs_of(5, 10, 60);
  RunPlan plan = plan_of(costs, 100, 20);
  plan.devices_per_replica = 30;
  plan.failures.kinds = {{Seconds(3600 * kMinute), 30, 1}, {Seconds(240 * kMinute), 2, 15}};
  CHECK(mean_time_between_failures(plan.failures)->value() == doctest::Approx(60 * kMinute));
  const RunStatistics runs = goodput_over_seeds(plan, 1, 400);
  const double expected =
      expected_run_time(Seconds(100 * 3600), Seconds(20 * kMinute), costs) / Seconds(1);
  const double error = runs.wall.deviation / std::sqrt(400.0);
  INFO("mean " << runs.wall.mean << " s, expected " << expected << " +- " << error);
  CHECK(std::abs(runs.wall.mean - expected) < 4 * error);
}

}  // namespace
}  // namespace interlock::checkpoint_interval_test
