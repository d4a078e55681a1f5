// Runs in reports: figures, columns and keys of what failures make of many steps.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "reports/report.h"
#include "tests/reports/support/handmade.h"

namespace interlock::run_report_test {
namespace {

using Json = nlohmann::json;

/// The two devices for a hundred steps of 6 ms, in all 1 s: 0.6 s of use.
ScenarioResult long_run() {
  ScenarioResult result = two_devices();
  RunResult run;
  run.plan = {.steps = 100, .step_time = Seconds(6e-3), .devices_per_replica = 2};
  run.plan.checkpoint = {.interval = 10, .write = Seconds(5e-3)};
  run.costs = {Seconds(5e-3), Seconds(0), Seconds(10e-3)};
  RunStatistics& statistics = run.statistics;
  statistics = {.seeds = 20, .fewest_replicas = 1};
  statistics.goodput = {0.6, 0.01, 0.58, 0.6, 0.62};
  statistics.wall = {1, 0.02, 0.97, 1, 1.03};
  statistics.useful.mean = 0.6;
  statistics.lost.mean = 0.1;
  statistics.checkpoint.mean = 0.05;
  statistics.restart.mean = 0.25;
  statistics.failures.mean = 4;
  statistics.rollbacks.mean = 3;
  statistics.redone_steps.mean = 12;
  result.run = run;
  return result;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a table tells where the time of a run went, if there is one") {
  const std::string table = terminal_table({long_run()}, {.width = 200});
  CAPTURE(table);
  CHECK(says(table, "mean of 20 runs; 5th to 95th percentile 970 ms to 1.03 s"));
  CHECK(says(table, "60.0%"));
  CHECK(says(table, "of the run; checkpoints 5.0%, restarts 25.0%, waiting for devices 0.0%"));
  CHECK(says(table, "3 back to a checkpoint, 12 steps done again"));
  // sqrt(2 x 5 x 10) = 10 ms; x = 0.5, 10 (1 + 1 / 6 + 1 / 36) - 5 = 6.94 ms.
  CHECK(says(table, "Young 10.0 ms, Daly 6.94 ms"));
  CHECK(!says(terminal_table({two_devices()}, {}), "Goodput"));
}

TEST_CASE("several scenarios are compared by the length of their runs") {
  const std::string table = terminal_table({two_devices(), long_run()}, {.width = 200});
  CAPTURE(table);
  CHECK(says(table, "Goodput"));
  CHECK(!says(terminal_table({two_devices(), two_devices()}, {.width = 200}), "Goodput"));
}

void collect_keys(const Json& json, std::set<std::string>& keys) {
  for (const auto& [key, value] : json.items()) {
    if (json.is_object()) keys.insert(key);
    if (value.is_structured()) collect_keys(value, keys);
  }
}

TEST_CASE("the keys of a run are those of the manual, and null without one") {
  const Json json = Json::parse(result_json(long_run()))["run"];
  CHECK(json["steps"] == 100);
  CHECK(json["goodput"]["p95"] == 0.62);
  CHECK(json["checkpoint"]["interval_s"].get<double>() == doctest::Approx(0.06));
  CHECK(json["checkpoint"]["young_s"].get<double>() == doctest::Approx(0.01));
  CHECK(json["mean_time_between_failures_s"] == 0.01);
  std::set<std::string> keys;
  collect_keys(json, keys);
  CHECK(keys.size() > 25);
  const std::string manual = read_file(std::string(DOCS_FOLDER) + "/result.md");
  for (const std::string& key : keys) {
    CAPTURE(key);
    CHECK(says(manual, "`" + key + "`"));
  }
  CHECK(Json::parse(result_json(two_devices()))["run"].is_null());
}

}  // namespace
}  // namespace interlock::run_report_test
