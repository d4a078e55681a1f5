// Statistics over seeds: percentiles by hand, determinism, and runs of millions of steps.
// SPDX-License-Identifier: Apache-2.0
#include "sim/runs/goodput.h"

#include <doctest/doctest.h>

#include <cmath>

namespace interlock::goodput_test {
namespace {

TEST_CASE("a spread is worked by hand") {
  // 1, 2, 4, 9: mean 4, squares 9 + 4 + 0 + 25 = 38, deviation sqrt(38 / 3). Place 0.05 * 3 = 0.15
  // lies at 1 + 0.15 * 1; 1.5 at 2 + 0.5 * 2; 2.85 at 4 + 0.85 * 5.
  const Spread spread = spread_of({9, 1, 4, 2});
  CHECK(spread.mean == 4);
  CHECK(spread.deviation == doctest::Approx(std::sqrt(38.0 / 3)));
  CHECK(spread.p5 == doctest::Approx(1.15));
  CHECK(spread.p50 == doctest::Approx(3));
  CHECK(spread.p95 == doctest::Approx(8.25));
  const Spread one = spread_of({7});
  CHECK(one.deviation == 0);
  CHECK(one.p5 == 7);
  CHECK(one.p95 == 7);
}

RunPlan large_plan() {
  RunPlan plan{.steps = 1'000'000,
               .step_time = Seconds(4.7),
               .replicas = 128,
               .devices_per_replica = 128,
               .micro_batches = 16,
               .detection = Seconds(60),
               .reload = Seconds(300)};
  plan.checkpoint = {.interval = 100, .write = Seconds(60)};
  plan.failures = {.kinds = {{Seconds(16384 * 3.1 * 3600), 16384, 1}}, .replacement = Seconds(0)};
  return plan;
}

TEST_CASE("a million steps on 16,384 devices take the expected time") {
  const RunPlan plan = large_plan();
  const RunStatistics runs = goodput_over_seeds(plan, 1, 10);
  // A failure every 3.1 h, 470 s between checkpoints of 60 s, 360 s of restart: Daly's function
  // M e^(R/M) (e^(s/M) - 1) / tau with M = 11160, R = 360, s = 530, tau = 470.
  const double stretch = 11160 * std::exp(360 / 11160.0) * std::expm1(530 / 11160.0) / 470;
  const double error = runs.goodput.deviation / std::sqrt(10.0);
  INFO("goodput " << runs.goodput.mean << ", expected " << 1 / stretch << " +- " << error);
  CHECK(std::abs(runs.goodput.mean - 1 / stretch) < 4 * error);
  CHECK(runs.checkpoints.mean == 10000);
  // Failures come at a rate of one every 3.1 h of the whole run.
  CHECK(runs.failures.mean == doctest::Approx(runs.wall.mean / 11160).epsilon(0.05));
}

TEST_CASE("the same seeds give the same statistics, other seeds others") {
  RunPlan plan = large_plan();
  plan.steps = 10'000;
  const RunStatistics a = goodput_over_seeds(plan, 3, 5), b = goodput_over_seeds(plan, 3, 5);
  CHECK(a.wall.mean == b.wall.mean);
  CHECK(a.goodput.deviation == b.goodput.deviation);
  CHECK(a.wall.mean != goodput_over_seeds(plan, 4, 5).wall.mean);
  CHECK(a.goodput.p5 <= a.goodput.p50);
  CHECK(a.goodput.p50 <= a.goodput.p95);
}

TEST_CASE("a run in which nothing is drawn is made once") {
  RunPlan plan{.steps = 10, .step_time = Seconds(1)};
  const RunStatistics runs = goodput_over_seeds(plan, 1, 20);
  CHECK(runs.seeds == 1);
  CHECK(runs.goodput.mean == 1);
}

}  // namespace
}  // namespace interlock::goodput_test
