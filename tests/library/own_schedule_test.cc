// Schedules made in code, against formulas of papers.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <interlock/interlock.h>

#include <algorithm>

namespace interlock::own_schedule_test {
namespace {

/// Returns stages of 1 ms a forward and each half of a backward, and messages of no time.
Schedule with_equal_stages(Schedule schedule, int stages) {
  schedule.stages.assign(static_cast<std::size_t>(stages), {1e-3, 1e-3, 1e-3});
  return schedule;
}

/// Returns GPipe's order: all forwards, then all backwards.
Schedule forwards_first(int stages, int micro_batches) {
  Schedule schedule;
  for (int stage = 0; stage < stages; ++stage) {
    schedule.ranks.emplace_back();
    for (const char op : {'F', 'B'}) {
      for (int i = 0; i < micro_batches; ++i) schedule.ranks.back().push_back({op, stage, i});
    }
  }
  return with_equal_stages(schedule, stages);
}

TEST_CASE("an order written in code takes the (m + p - 1) (F + B) of Huang et al.") {
  for (const int p : {1, 2, 4}) {
    for (const int m : {1, 4, 9}) {
      INFO("p " << p << ", m " << m);
      const Result step = simulate(forwards_first(p, m));
      CHECK(step.step_time_s() == doctest::Approx((m + p - 1) * 3e-3).epsilon(1e-9));
      CHECK(step.bubble_fraction() == doctest::Approx(double(p - 1) / (m + p - 1)).scale(1));
    }
  }
}

TEST_CASE("costs of stages and links arrive: one micro-batch through two stages") {
  Schedule schedule = forwards_first(2, 1);
  schedule.stages[0] = {2e-3, 3e-3, 5e-3, 7e-3, 1e6, 4e6, 16e6};
  schedule.stages[1] = {11e-3, 13e-3, 17e-3, 1e-3, 9e9, 0, 0};
  schedule.link_bandwidth_bytes_per_s = 1e9;  // 1 ms for 1 MB
  schedule.link_latency_s = 5e-4;
  const Result step = simulate(schedule);
  // Forward, message, forward and backward above, message back, backward and update below.
  CHECK(step.step_time_s() ==
        doctest::Approx(2e-3 + 1.5e-3 + 11e-3 + 30e-3 + 1.5e-3 + 8e-3 + 7e-3).epsilon(1e-9));
  const Device device = step.devices()[0];
  CHECK(device.memory_bytes.at("weights") == doctest::Approx(16e6));
  CHECK(device.peak_stash_bytes == doctest::Approx(4e6));
}

TEST_CASE("schedules of the catalogue come as lists, and take what their papers say") {
  Schedule list = Schedule::named("1f1b", 4, 4, 6);
  CHECK(list.text() ==
        "0F0,0F1,0F2,0F3,0B0,0F4,0B1,0F5,0B2,0B3,0B4,0B5\n"
        "1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B2,1F5,1B3,1B4,1B5\n"
        "2F0,2F1,2B0,2F2,2B1,2F3,2B2,2F4,2B3,2F5,2B4,2B5\n"
        "3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4,3B4,3F5,3B5\n");
  CHECK(simulate(with_equal_stages(list, 4)).step_time_s() ==
        doctest::Approx((6 + 3) * 3e-3).epsilon(1e-9));
  // ZB-H1: a bubble of (p - 1) (F + I - W), Qi et al., table 2.
  CHECK(simulate(with_equal_stages(Schedule::named("zb-h1", 4, 4, 12), 4)).step_time_s() ==
        doctest::Approx(12 * 3e-3 + 3 * 1e-3).epsilon(1e-9));
  const Schedule chunks = Schedule::named("interleaved", 2, 4, 4);
  CHECK(chunks.ranks[1][0].stage == 1);
  CHECK_THROWS_AS(Schedule::named("interleaved", 2, 4, 3), Error);
  CHECK_THROWS_AS(Schedule::named("eager", 2, 2, 3), Error);
  CHECK_THROWS_AS(Schedule::named("1f1b", 0, 4, 6), Error);
}

TEST_CASE("an order that cannot run is refused, and the op is named") {
  Schedule crossed = forwards_first(2, 2);
  std::swap(crossed.ranks[0][0], crossed.ranks[0][3]);
  CHECK_THROWS_WITH_AS(simulate(crossed), doctest::Contains("0B1"), Error);
  Schedule missing = forwards_first(2, 2);
  missing.ranks[1].pop_back();
  CHECK_THROWS_WITH_AS(simulate(missing), doctest::Contains("1F1"), Error);
  Schedule letter = forwards_first(1, 1);
  letter.ranks[0][0].op = 'X';
  CHECK_THROWS_WITH_AS(simulate(letter), doctest::Contains("expected F, B, I or W"), Error);
  Schedule negative = forwards_first(1, 1);
  negative.stages[0].forward_s = -1;
  CHECK_THROWS_WITH_AS(simulate(negative), doctest::Contains("forward_s: expected a number"),
                       Error);
  CHECK_THROWS_AS(simulate(Schedule()), Error);
}

TEST_CASE("a schedule is a scenario, which can be changed and run again") {
  const Schedule schedule = forwards_first(2, 4);
  const std::string scenario = schedule.scenario();
  CHECK(simulate(scenario).step_time_s() == simulate(schedule).step_time_s());
  Options slower;
  slower.set = {"model.modules.0.forward=2 ms"};
  CHECK(simulate(scenario, slower).step_time_s() > simulate(schedule).step_time_s());
}

}  // namespace
}  // namespace interlock::own_schedule_test
