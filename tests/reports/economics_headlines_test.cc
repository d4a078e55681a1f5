// Energy, money, goals and ranges as people and programs are shown them.
// SPDX-License-Identifier: Apache-2.0
#include "reports/headlines/economics_headlines.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "reports/charts/measures.h"
#include "reports/report.h"
#include "reports/result/result_file.h"
#include "tests/reports/support/handmade.h"

namespace interlock::economics_headlines_test {
using Json = nlohmann::json;

namespace {

/// Two devices, a step of 6 ms, half of it busy, 128 samples; 100,000 steps to the goal.
ScenarioResult priced() {
  ScenarioResult result = two_devices();
  Question& scenario = result.plan.question;
  scenario.layout.mesh.degree(Dimension::Pipeline) = 2;
  scenario.cluster.machines.front().device.power = DevicePower{Watts(500), Watts(100)};
  scenario.cluster.machines.front().power = {.node = Watts(400), .link = Watts(10), .pue = 1.25};
  scenario.cluster.machines.front().devices_per_node = 4;
  scenario.cluster.machines.front().price = HourlyPrice{3, "USD"};
  scenario.goal = Goal{.length = {.amount = 100'000}, .strategies = {}};
  result.confidence = {.range = TimeRange{Seconds(5e-3), Seconds(8e-3), 0.8, "two runs"},
                       .extrapolates = {"it was never done"}};
  return result;
}

TEST_CASE("a result tells energy, cost, goal and range in SI units") {
  const Json json = Json::parse(result_json(priced()));
  MESSAGE("devices: 2 x 6 ms x (500 + 100) / 2 W = 3.6 J; nodes: half of 400 W for 6 ms = 1.2 J;");
  MESSAGE("links: both 0.04 of the time: 6 ms x 0.08 x 10 W = 4.8 mJ; all x 1.25 = 6.006 J");
  CHECK(json["energy"]["devices_j"].get<double>() == doctest::Approx(3.6));
  CHECK(json["energy"]["nodes_j"].get<double>() == doctest::Approx(1.2));
  CHECK(json["energy"]["links_j"].get<double>() == doctest::Approx(0.0048));
  CHECK(json["energy_j"].get<double>() == doctest::Approx(6.006));
  CHECK(json["energy"]["mean_power_w"].get<double>() == doctest::Approx(1001));
  CHECK(json["energy"]["pue"] == 1.25);
  MESSAGE("2 x 3 USD/h x 6 ms = 1e-5 USD for 128 samples: 0.078125 USD a million");
  CHECK(json["cost"]["step"].get<double>() == doctest::Approx(1e-5));
  CHECK(json["cost"]["million_samples"].get<double>() == doctest::Approx(0.078125));
  CHECK(json["cost"]["currency"] == "USD");
  CHECK(json["cost"]["device_hour"] == 3);
  MESSAGE("100,000 steps: 600 s, 600.6 kJ, 1 USD");
  CHECK(json["goal"]["time_s"].get<double>() == doctest::Approx(600));
  CHECK(json["goal"]["steps"] == 100'000);
  CHECK(json["goal"]["goodput"] == 1);
  CHECK(json["goal"]["energy_j"].get<double>() == doctest::Approx(600'600));
  CHECK(json["goal"]["cost"]["amount"].get<double>() == doctest::Approx(1));
  CHECK(json["range"] ==
        Json{{"low_s", 5e-3}, {"high_s", 8e-3}, {"level", 0.8}, {"basis", "two runs"}});
  CHECK(json["extrapolates"] == Json::array({"it was never done"}));
}

TEST_CASE("table, JSON and page say that kernels are priced at the peak, and give no range") {
  ScenarioResult result = priced();
  const std::string told = "kernels are priced at the peak rates of \"X\"";
  result.confidence = {.range = {}, .extrapolates = {told}, .at_peak = told};
  const Json json = Json::parse(result_json(result));
  CHECK(json["range"].is_null());
  CHECK(json["extrapolates"] == Json::array({told}));
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  const std::string table = terminal_table({result}, {.width = 300});
  CHECK(has(table, "Range            none"));
  CHECK(has(table, "At the peak: " + told));
  const std::string two = terminal_table({result, result}, {.width = 300});
  CHECK(has(two, "At the peak: " + told));
  CHECK(has(html_report({result}), "At the peak: kernels are priced at the peak rates of &quot;X"));
  CHECK(!has(terminal_table({priced()}, {.width = 300}), "At the peak"));
}

TEST_CASE("docs/result.md explains every key of them") {
  const std::string manual = read_file(std::string(DOCS_FOLDER) + "/result.md");
  const Json json = Json::parse(result_json(priced()));
  for (const char* part : {"energy", "cost", "goal", "range"}) {
    for (const auto& member : json[part].items()) {
      const std::string& key = member.key();
      CAPTURE(key);
      CHECK(manual.find("`" + key + "`") != std::string::npos);
    }
  }
}

TEST_CASE("the table of one scenario says it in words") {
  const std::string table = terminal_table({priced()}, {});
  const auto has = [&](const char* words) {
    INFO(words);
    INFO(table);
    CHECK(table.find(words) != std::string::npos);
  };
  has("5.00 ms to 8.00 ms");
  has("80% of two runs; it was never done");
  has("6.01 J");
  has("1.00 kW on average");
  has("0.0781 USD");
  has("for a million samples, at 3 USD a device and hour");
  has("10.0 min");
  MESSAGE("two devices for ten minutes are a third of an hour");
  has("100 k steps; 0.333 GPU-hours; 601 kJ; 1");
  MESSAGE("who asks for neither money nor a goal is not told of them");
  ScenarioResult plain = priced();
  plain.plan.question.goal.reset();
  plain.plan.question.cluster.machines.front().price.reset();
  CHECK(terminal_table({plain}, {}).find("Energy") == std::string::npos);
}

TEST_CASE("several scenarios have columns, if any has a goal or a price") {
  ScenarioResult other = priced(), none = two_devices();
  other.plan.question.name = "dearer";
  other.plan.question.cluster.machines.front().price->amount = 6;
  none.plan.question.name = "unknown";
  const auto columns = [](const std::vector<ScenarioResult>& results) {
    std::string heads;
    for (const Column& column : comparison_grid(results).columns) heads += column.head + ",";
    return heads;
  };
  CHECK(columns({priced(), other, none}).find("Exposed,To goal,GPU-hours,Energy,Cost,") !=
        std::string::npos);
  const Grid grid = comparison_grid({priced(), other, none});
  CHECK(grid.rows[0].back().text == "1.00");
  CHECK(grid.rows[1].back().text == "2.00");
  CHECK(grid.rows[2].back().text == "–");
  CHECK(columns({none, none}).find("Cost") == std::string::npos);
  ScenarioResult per_sample = priced();
  per_sample.plan.question.goal.reset();
  CHECK(columns({per_sample, none}).find("Exposed,Cost/M samples,") != std::string::npos);
  MESSAGE("two currencies have no column in common");
  other.plan.question.cluster.machines.front().price->currency = "EUR";
  CHECK(columns({priced(), other}).find("Cost") == std::string::npos);
}

TEST_CASE("several scenarios have columns of ranges, if any was drawn on a calibrated device") {
  ScenarioResult drawn = priced(), none = two_devices();
  drawn.plan.question.cluster.machines.front().device.calibrated =
      std::make_shared<CalibratedModel>();
  const auto column_of = [](const Grid& grid, const std::string& head) {
    std::size_t at = 0;
    while (at < grid.columns.size() && grid.columns[at].head != head) ++at;
    return at;
  };
  const Grid grid = comparison_grid({drawn, none});
  const std::size_t low = column_of(grid, "Low");
  REQUIRE(low + 1 < grid.columns.size());
  CHECK(grid.columns[low + 1].head == "High");
  CHECK(grid.columns[low].unit == "ms");
  CHECK(grid.rows[0][low].text == "5.00");
  CHECK(grid.rows[0][low + 1].text == "8.00");
  CHECK(grid.rows[1][low].text == "–");
  MESSAGE("ranges of published runs stand in the tables of single scenarios, and in the JSON");
  const Grid published = comparison_grid({priced(), none});
  CHECK(column_of(published, "Low") == published.columns.size());
}

TEST_CASE("measures of kept results know them") {
  const JsonValue document = parse_json(result_json(priced()), "kept.json");
  const std::vector<ReadResult> results = read_result_files({document}).results;
  const auto value = [&](const char* name) { return *measured(name, results)[0].values[0]; };
  CHECK(value("energy") == doctest::Approx(6.006));
  CHECK(value("power") == doctest::Approx(1001));
  CHECK(value("cost") == doctest::Approx(1e-5));
  CHECK(value("goal_time") == doctest::Approx(600));
  CHECK(value("goal_energy") == doctest::Approx(600'600));
  CHECK(value("goal_cost") == doctest::Approx(1));
  CHECK(value("least_time") == doctest::Approx(5e-3));
  CHECK(value("most_time") == doctest::Approx(8e-3));
  CHECK(measured("goal_cost", results)[0].label == "cost of the goal (USD)");
  CHECK(measured("goal_energy", results)[0].label == "energy to the goal (kJ)");
}

}  // namespace

}  // namespace interlock::economics_headlines_test
