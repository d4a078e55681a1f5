// Reports of jobs: the table, the JSON, and the runs that pages draw.
// SPDX-License-Identifier: Apache-2.0
#include "reports/jobs_report.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace interlock::jobs_report_test {
namespace {

using Json = nlohmann::json;

// Devices of a node share its card of 1 GB/s. Each job computes for 2 ms, then reduces 3 MB: 5 ms a
// step alone, 8 ms beside the other. Jobs on nodes of their own lose nothing.
const std::string kTwo = R"({
  "name": "cards",
  "cluster": {"kind": "machine", "name": "cards", "device": "a100-80g",
              "devices_per_node": 2, "nodes": 4,
              "port": {"bandwidth": "1000 GB/s"}, "cards": {"bandwidth": "1 GB/s"}},
  "jobs": [{"name": "one", "placement": {"nodes": [0, 1]}, "scenario": SCENARIO},
           {"name": "two", "placement": {"nodes": NODES}, "scenario": SCENARIO}]})";

const std::string kScenario = R"({
  "model": {"kind": "profile", "modules": [{"forward": "2 ms", "parameters": "3 MB"}]},
  "cluster": {"kind": "machine", "name": "cards", "device": "a100-80g",
              "devices_per_node": 2, "nodes": 1,
              "port": {"bandwidth": "1000 GB/s"}, "cards": {"bandwidth": "1 GB/s"}},
  "parallel": {"pipeline": 1, "data": 2, "overlap_gradients": false},
  "training": {"strategy": "global", "micro_batches": 1}})";

std::string text_with(const std::string& nodes, const std::string& more = "") {
  std::string text = kTwo;
  for (const auto& [word, by] : {std::pair<std::string, std::string>{"SCENARIO", kScenario},
                                 {"SCENARIO", kScenario},
                                 {"NODES", nodes}}) {
    text.replace(text.find(word), word.size(), by);
  }
  text.insert(1, more);
  return text;
}

std::vector<JobsResult> priced(const std::string& text, bool keep_logs = false) {
  std::vector<JobsResult> results;
  for (const JobsQuestion& question : load_jobs(parse_json(text, "cards.json"))) {
    results.push_back(price_jobs(question, keep_logs));
  }
  return results;
}

void check_has(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("the table tells what each job loses, and on which links they meet") {
  const std::string table = jobs_table(priced(text_with("[0, 1]")), {});
  check_has(table, "2 jobs on 8 devices of cards, 4 nodes, native engine");
  check_has(table, "one        2  nodes 0, 1, 1 device of each   5.00      8.00  37.5");
  check_has(table, "two        2  nodes 0, 1, 1 device of each   5.00      8.00  37.5");
  check_has(table, "Lost          1.5 devices");
  check_has(table, "Shared links  4");
  check_has(table, "node0 nic0 down  75.0");
}

TEST_CASE("jobs that meet on no link are said to lose nothing") {
  const std::string table = jobs_table(priced(text_with("[2, 3]")), {});
  check_has(table, "5.00      5.00   0.0");
  check_has(table, "Shared links  0 ");
  CHECK(table.find("Shared link ") == std::string::npos);
}

TEST_CASE("the JSON has each job alone and together, and how busy it makes each link") {
  const Json json = Json::parse(jobs_json(priced(text_with("[0, 1]"))));
  CHECK(json["format"] == "interlock-jobs/1");
  CHECK(json["steady"] == true);
  CHECK(json["devices_total"] == 8);
  REQUIRE(json["jobs"].size() == 2);
  const Json& job = json["jobs"][1];
  CHECK(job["name"] == "two");
  CHECK(job["devices"] == Json{1, 3});
  CHECK(job["nodes"] == Json{0, 1});
  CHECK(job["start_s"] == 0);
  CHECK(job["step_time_alone_s"].get<double>() == doctest::Approx(5e-3));
  CHECK(job["step_time_s"].get<double>() == doctest::Approx(8e-3));
  CHECK(job["loss"].get<double>() == doctest::Approx(3.0 / 8));
  CHECK(job["alone"]["format"] == "interlock-result/1");
  CHECK(job["together"]["step_time_s"] == job["step_time_s"]);
  CHECK(job["together"]["devices"][1]["device"] == 3);
  // A result of one job does not know the others, and cannot be simulated again.
  CHECK(job["together"]["scenario"].is_null());
  CHECK(json["scenario"]["jobs"].size() == 2);
  REQUIRE_FALSE(json["links"].empty());
  CHECK(json["links"][0]["utilisation"].get<double>() == doctest::Approx(0.75));
  CHECK(json["links"][0]["utilisation_by_job"][0].get<double>() == doctest::Approx(0.375));
}

TEST_CASE("a sweep over placements is a table of both, an array, and a page with each run") {
  const std::string sweep = R"("sweep": {"jobs.1.placement.nodes": [[0, 1], [2, 3]]},)";
  const std::vector<JobsResult> results = priced(text_with("[0, 1]", sweep), true);
  REQUIRE(results.size() == 2);
  const std::string table = jobs_table(results, {});
  check_has(table, "37.5    75.0");
  check_has(table, "0.0       –");
  const Json json = Json::parse(jobs_json(results));
  REQUIRE(json.size() == 2);
  CHECK(json[1]["jobs"][0]["loss"] == 0);
  const std::vector<ScenarioResult> runs = runs_of_jobs(results);
  REQUIRE(runs.size() == 8);
  CHECK(runs[1].plan.question.name.find("one, beside the others") != std::string::npos);
  CHECK(html_report(runs).find("two, alone") != std::string::npos);
}

}  // namespace
}  // namespace interlock::jobs_report_test
