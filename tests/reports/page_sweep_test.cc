// Data of sweeps in pages: figures are the result JSON's, and nothing breaks out.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "reports/report.h"
#include "tests/reports/support/handmade.h"

namespace interlock::page_sweep_test {
namespace {

using Json = nlohmann::json;

constexpr const char* kOpen = "<script type=\"application/sweep+json\">";

/// Null if the page has none.
Json sweep_of(const std::string& page) {
  const std::string open = kOpen;
  const std::size_t at = page.find(open);
  if (at == std::string::npos) return nullptr;
  const std::size_t begin = at + open.size();
  return Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

std::vector<ScenarioResult> swept(const std::string& sweep) {
  const std::string text = R"({"name": "four", "model": {"kind": "profile", "modules": [{
      "repeat": 4, "forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms",
      "output": "4 MiB", "stash": "300 MiB"}]},
    "cluster": {"kind": "uniform", "devices": 4, "memory": "2 GiB",
      "link": {"bandwidth": "10 GB/s"}},
    "training": {"strategy": "global", "schedule": "gpipe", "micro_batches": 4},
    "sweep": )" + sweep + "}";
  std::vector<ScenarioResult> results;
  for (const Scenario& scenario : load_scenarios(parse_json(text, "four.json"))) {
    results.push_back(run_scenario(scenario, true));
  }
  return results;
}

double figure(const Json& result, const std::string& key) {
  if (key == "peak_memory_bytes") {
    double most = 0;
    for (const Json& device : result["devices"]) {
      most = std::max(most, device["peak_memory_bytes"].get<double>());
    }
    return most;
  }
  if (key == "micro_batches_per_s") {
    const double of_all = result["micro_batches"].get<double>() * result["parallel"]["data"];
    return of_all * (1 / result["step_time_s"].get<double>());
  }
  const bool share = result["utilisation"].contains(key);
  return (share ? result["utilisation"][key] : result[key]).get<double>();
}

}  // namespace

TEST_CASE("a page of a sweep holds every result's figures as the result JSON has them") {
  const std::vector<ScenarioResult> results =
      swept(R"({"training.schedule": ["gpipe", "1f1b"], "training.micro_batches": [8, 2, 4]})");
  const Json data = sweep_of(html_report(results));
  const Json all = Json::parse(result_json(results));
  REQUIRE(data["results"].size() == 6);
  CHECK(data["axes"][0]["name"] == "schedule");
  CHECK(data["axes"][1]["path"] == "training.micro_batches");
  int fails = 0;
  std::set<std::pair<int, int>> places;
  for (std::size_t r = 0; r < 6; ++r) {
    const Json& row = data["results"][r];
    places.emplace(row["at"][0].get<int>(), row["at"][1].get<int>());
    const Json& number = data["axes"][1]["values"][row["at"][1].get<std::size_t>()]["number"];
    CHECK(number == all[r]["sweep"]["training.micro_batches"]);
    CHECK(data["axes"][0]["values"][row["at"][0].get<std::size_t>()]["label"] ==
          all[r]["sweep"]["training.schedule"]);
    for (std::size_t m = 0; m < data["measures"].size(); ++m) {
      const std::string key = data["measures"][m]["key"];
      INFO(key << " of " << all[r]["name"]);
      CHECK(row["values"][m].get<double>() == figure(all[r], key));
    }
    CHECK(row.contains("fails") == !all[r]["fits_in_memory"].get<bool>());
    if (row.contains("fails")) ++fails;
    if (row.contains("fails")) {
      CHECK(row["warning"].get<std::string>().starts_with("Does not fit: device "));
    }
  }
  INFO("GPipe keeps all 8 x 300 MiB on every device, which has 2 GiB; 1F1B at most 4");
  CHECK(fails == 1);
  CHECK(places.size() == 6);
  CHECK(data["axes"][1]["values"].dump() ==
        R"([{"label":"2","number":2.0},{"label":"4","number":4.0},{"label":"8","number":8.0}])");
}

TEST_CASE("results that no sweep made have no axes, and two of them no picture") {
  const ScenarioResult one = two_devices();
  CHECK(sweep_of(html_report({one})).is_null());
  CHECK(sweep_of(html_report({one, one})).is_null());
  const Json three = sweep_of(html_report({one, one, one}));
  CHECK(three["axes"].empty());
  CHECK(three["results"].size() == 3);
  CHECK(three["drawn"] == 3);
}

TEST_CASE("a path of which only some results have a value is no axis") {
  std::vector<ScenarioResult> results(3, two_devices());
  results[0].scenario.swept = {{"a.x", "1", 1}, {"b", "2", 2}};
  results[1].scenario.swept = {{"a.x", "3", 3}};
  results[2].scenario.swept = {{"a.x", "2", 2}, {"b", "2", 2}};
  const Json data = sweep_of(html_report(results));
  REQUIRE(data["axes"].size() == 1);
  CHECK(data["axes"][0]["path"] == "a.x");
  CHECK(data["results"][1]["at"] == Json::array({2}));
}

TEST_CASE("what a sweep is called and what it sets cannot break out of the page") {
  const std::string evil = "</script><script>alert(1)</script><!--\"'&<img onerror=x>\xff";
  std::vector<ScenarioResult> results(3, two_devices());
  for (std::size_t r = 0; r < results.size(); ++r) {
    results[r].scenario.name = evil + " | " + std::to_string(r);
    results[r].scenario.swept = {{evil, evil + std::to_string(r), std::nullopt}};
  }
  const std::string page = html_report(results);
  CHECK(page.find("<script>alert") == std::string::npos);
  CHECK(page.find("<img") == std::string::npos);
  CHECK(page.find("<!--") == std::string::npos);
  CHECK(sweep_of(page)["axes"][0]["path"].get<std::string>().substr(0, 10) == "</script><");
}

TEST_CASE("a sweep of 1,000 results is small beside the page") {
  std::vector<ScenarioResult> results(1000, two_devices());
  for (int r = 0; r < 1000; ++r) {
    ScenarioResult& result = results[static_cast<std::size_t>(r)];
    result.scenario.name = "sweep | x=" + std::to_string(r / 40) + " | y=" + std::to_string(r % 40);
    result.scenario.swept = {{"x", std::to_string(r / 40), r / 40},
                             {"y", std::to_string(r % 40), r % 40}};
  }
  const std::string page = html_report(results);
  const std::size_t begin = page.find(kOpen);
  const std::size_t size = page.find("</script>", begin) - begin;
  INFO(size << " bytes");
  CHECK(size < 300'000);
  CHECK(sweep_of(page)["results"].size() == 1000);
  CHECK(sweep_of(page)["drawn"] == kMostDrawn);
}

TEST_CASE("no two scripts of a page give a name to different things") {
  const std::string page = html_report({two_devices()});
  std::map<std::string, int> names;
  for (const std::string word : {"\nfunction ", "\nasync function ", "\nconst ", "\nlet "}) {
    for (std::size_t at = page.find(word); at != page.npos; at = page.find(word, at + 1)) {
      const std::size_t begin = at + word.size();
      ++names[page.substr(begin, page.find_first_of(" (=;", begin) - begin)];
    }
  }
  CHECK(names.size() > 50);
  for (const auto& name : names) {
    INFO(name.first);
    CHECK(name.second == 1);
  }
}

}  // namespace interlock::page_sweep_test
