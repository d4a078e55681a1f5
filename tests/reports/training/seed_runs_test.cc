// Trainings under several seeds: means, spreads, and the table of them.
// SPDX-License-Identifier: Apache-2.0
#include "reports/result/seed_runs.h"

#include <doctest/doctest.h>

#include "reports/charts/training_report.h"

namespace interlock::seed_runs_test {
namespace {

TrainingCurve run_of(const std::string& name, std::uint64_t seed, std::vector<double> losses,
                     double simulated, double measured) {
  TrainingCurve run{.name = name, .strategy = "global", .schedule = "1f1b", .executor = "cpu"};
  run.seed = seed;
  run.wanted_steps = static_cast<int>(losses.size());
  run.losses = std::move(losses);
  for (std::size_t s = 1; s <= run.losses.size(); ++s) {
    run.ends.emplace_back(measured * static_cast<double>(s));
  }
  run.simulated_step = Seconds(simulated);
  run.measured_step = Seconds(measured);
  run.peaks = {1024, 2048 * static_cast<std::int64_t>(seed)};
  return run;
}

/// Two scenarios under two seeds, as train makes them: all of a seed, then the next.
std::vector<TrainingCurve> four_runs() {
  return {
      run_of("m | a", 1, {9, 7, 5, 3, 2, 1}, 2, 3), run_of("m | b", 1, {9, 8, 8, 6, 4, 4}, 1, 4),
      run_of("m | a", 2, {9, 9, 7, 5, 3, 2}, 2, 5), run_of("m | b", 2, {9, 8, 6, 6, 6, 6}, 1, 4)};
}

TEST_CASE("curves of one scenario under several seeds are one curve, their mean") {
  const std::vector<SeedRuns> scenarios = by_scenario(four_runs());
  REQUIRE(scenarios.size() == 2);
  CHECK(scenarios[0][1].seed == 2);
  const TrainingCurve mean = mean_of_seeds(scenarios[0]);
  CHECK(mean.losses == std::vector<double>{9, 8, 6, 4, 2.5, 1.5});
  CHECK(mean.ends[5] == Seconds((18 + 30) / 2.0));
  CHECK(mean.measured_step == Seconds(4));
  CHECK(mean.peaks == std::vector<std::int64_t>{1024, 4096});
  // Twice the same seed: two scenarios that have one name.
  const std::vector<TrainingCurve> twice = {four_runs()[0], four_runs()[0]};
  CHECK(by_scenario(twice).size() == 2);
  CHECK(means_of_seeds({four_runs()[0]}).front().losses == four_runs()[0].losses);
}

TEST_CASE("a mean goes as far as all runs of its scenario") {
  std::vector<TrainingCurve> runs = {four_runs()[0], four_runs()[2]};
  runs[1].losses.resize(4);
  CHECK(mean_of_seeds(runs).losses == std::vector<double>{9, 8, 6, 4});
}

TEST_CASE("spreads of last losses are over seeds, and differences are between equal seeds") {
  const std::vector<SeedRuns> scenarios = by_scenario(four_runs());
  // Means of the last three: a has 2 and 10/3, b 14/3 and 6. Differences are 8/3 and 8/3.
  CHECK(last_losses(scenarios[0], 3).mean == doctest::Approx(8.0 / 3));
  CHECK(last_losses(scenarios[0], 3).deviation == doctest::Approx(4.0 / 3 / std::sqrt(2.0)));
  CHECK(more_than(scenarios[1], scenarios[0], 3).mean == doctest::Approx(8.0 / 3));
  CHECK(more_than(scenarios[1], scenarios[0], 3).deviation == doctest::Approx(0).epsilon(1e-9));
}

TEST_CASE("the table of several seeds has losses at equal times, and times to one loss") {
  const Grid grid = training_grid(four_runs());
  REQUIRE(grid.rows.size() == 2);
  const auto texts = [&](std::size_t row) {
    std::string all;
    for (const Cell& cell : grid.rows[row]) all += cell.text + "|";
    return all;
  };
  // The last loss is of three steps of six. b is done first, after 6 s: three steps of a, whose
  // mean is 23/3. All come to b's last loss, (14/3 + 6) / 2 = 16/3: a's means of three steps are
  // 23/3, 6 and 25/6, so in the fifth, after 10 s simulated and 20 s measured; b in the sixth.
  CHECK(texts(0) == "a|2|2.667 ± 0.943|–|2.00|7.667|4.00|10.0|20.0|");
  CHECK(texts(1) == "b|2|5.333 ± 0.943|2.667 ± 0.000|1.00|5.333|4.00|6.0|24.0|");
  CHECK(grid.columns[5].unit == "6.0 s");
  CHECK(training_note(four_runs()).find("mean of the last 3 steps of each run") !=
        std::string::npos);
  const LineChart chart = training_chart(four_runs());
  REQUIRE(chart.names.size() == 2);
  CHECK(chart.names[0] + chart.names[1] == "ab");
  CHECK(chart.subtitle.find("means over seeds") != std::string::npos);
  CHECK(training_chart({four_runs()[0]}).subtitle.find("seeds") == std::string::npos);
}

}  // namespace
}  // namespace interlock::seed_runs_test
