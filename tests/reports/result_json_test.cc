// Result JSON: the keys and values of the contract, and that the manual knows every key.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "reports/report.h"
#include "tests/reports/support/handmade.h"

namespace interlock::result_json_test {
using Json = nlohmann::json;

namespace {

void collect_keys(const Json& json, std::set<std::string>& keys) {
  for (const auto& [key, value] : json.items()) {
    if (json.is_object()) keys.insert(key);
    if (value.is_structured()) collect_keys(value, keys);
  }
}

}  // namespace

TEST_CASE("a result has every key of the contract") {
  const Json json = Json::parse(result_json(two_devices()));
  for (const char* key : {"format",
                          "name",
                          "engine",
                          "tasks",
                          "wall_time_s",
                          "step_time_s",
                          "makespan_s",
                          "steady",
                          "fill_steps",
                          "fill_latency_s",
                          "samples_per_s",
                          "tokens_per_s",
                          "utilisation",
                          "bubble_fraction",
                          "exposed_communication_s",
                          "limiting_device",
                          "fits_in_memory",
                          "energy_j",
                          "staleness",
                          "devices",
                          "links"}) {
    CAPTURE(key);
    CHECK(json.contains(key));
  }
  for (const char* key : {"busy", "useful", "mfu", "hfu"}) CHECK(json["utilisation"].contains(key));
  for (const char* key : {"rank", "stages", "busy", "useful", "peak_memory_bytes",
                          "peak_stash_bytes", "allocated_peak_bytes", "memory_bytes"}) {
    CHECK(json["devices"][0].contains(key));
  }
  for (const char* key : {"weights", "weight_versions", "gradients", "optimizer", "stash",
                          "boundary", "head", "workspace", "communication"}) {
    CHECK(json["devices"][0]["memory_bytes"].contains(key));
  }
  for (const char* key : {"name", "bytes", "utilisation"}) CHECK(json["links"][0].contains(key));
}

TEST_CASE("values arrive in SI units") {
  const Json json = Json::parse(result_json(two_devices()));
  CHECK(json["format"] == "interlock-result/1");
  CHECK(json["name"] == "two devices");
  CHECK(json["strategy"] == "global");
  CHECK(json["schedule"] == "naive");
  CHECK(json["partition"] == Json::array({3, 3}));
  CHECK(json["step_time_s"].get<double>() == 0.006);
  CHECK(json["samples_per_s"].get<double>() == 128 / 6e-3);
  CHECK(json["utilisation"]["mfu"] == 0.25);
  CHECK(json["bubble_fraction"] == 0.5);  // 1 - busy
  CHECK(json["exposed_communication_s"] == 0.00025);
  CHECK(json["memory_capacity_bytes"] == 80LL * 1024 * 1024 * 1024);
  CHECK(json["staleness"] == Json{{"0", 1}});
  CHECK(json["links"][0] ==
        Json{{"name", "0->1"}, {"bytes", 2097152}, {"utilisation", 0.04}, {"stands_for", 1}});
}

TEST_CASE("token slices are listed, and micro-batches stay the user's") {
  ScenarioResult result = two_devices();
  CHECK(Json::parse(result_json(result))["token_slices"] == Json::array());
  result.plan.slices = {{600, 0, 1000}, {400, 600, 1000}};
  const Json json = Json::parse(result_json(result));
  CHECK(json["micro_batches"] == 1);
  CHECK(json["token_slices"] == Json::array({600, 400}));
}

TEST_CASE("micro-batches that differ in size are listed with their slices") {
  ScenarioResult result = two_devices();
  CHECK(Json::parse(result_json(result))["parts"] == Json::array());
  result.plan.sized_batches = {{.samples = 4, .slices = {{600, 0, 1000}, {400, 600, 1000}}},
                               {.samples = 1, .slices = {{1000, 0, 1000}}}};
  const Json json = Json::parse(result_json(result));
  CHECK(json["token_slices"] == Json::array());
  CHECK(json["parts"] == Json::parse(R"([{"samples": 4, "token_slices": [600, 400]},
                                         {"samples": 1, "token_slices": [1000]}])"));
}

TEST_CASE("stages are listed with the updates that they missed, where any did") {
  ScenarioResult result = two_devices();
  CHECK(!Json::parse(result_json(result)).contains("stage_staleness"));
  result.measurement.metrics.stage_staleness = {{1, 0.75}, {0, 0}};
  CHECK(Json::parse(result_json(result))["stage_staleness"] ==
        Json::parse(R"([{"most": 1, "mean": 0.75}, {"most": 0, "mean": 0.0}])"));
}

TEST_CASE("the classes of memory add up to the peak") {
  const Json json = Json::parse(result_json(two_devices()));
  for (const Json& device : json["devices"]) {
    std::int64_t sum = 0;
    for (const auto& [name, bytes] : device["memory_bytes"].items()) {
      CHECK(bytes.is_number_integer());
      sum += bytes.get<std::int64_t>();
    }
    CHECK(sum == device["peak_memory_bytes"]);
  }
}

TEST_CASE("what is unknown is null") {
  auto result = two_devices();
  Metrics& metrics = result.measurement.metrics;
  metrics.samples_per_s = metrics.mfu = metrics.hfu = std::nullopt;
  set_memory(metrics, std::nullopt);
  const Json json = Json::parse(result_json(result));
  CHECK(json["samples_per_s"].is_null());
  CHECK(json["tokens_per_s"].is_null());
  CHECK(json["utilisation"]["mfu"].is_null());
  CHECK(json["utilisation"]["hfu"].is_null());
  CHECK(json["energy_j"].is_null());
  CHECK(json["memory_capacity_bytes"].is_null());
}

TEST_CASE("several results are an array, and any name can be written") {
  auto odd = two_devices();
  odd.plan.question.name = "broken \xff UTF-8 and \"quotes\"";
  const Json json = Json::parse(result_json(std::vector{two_devices(), odd}));
  REQUIRE(json.size() == 2);
  CHECK(json[1]["name"] == "broken \uFFFD UTF-8 and \"quotes\"");
}

TEST_CASE("docs/result.md explains every key") {
  std::set<std::string> keys;
  ScenarioResult stale = two_devices();
  stale.measurement.metrics.stage_staleness = {{1, 1}};
  collect_keys(Json::parse(result_json(stale)), keys);
  keys.erase("0");  // a count of updates, under staleness
  const std::string manual = read_file(std::string(DOCS_FOLDER) + "/result.md");
  for (const auto& key : keys) {
    CAPTURE(key);
    CHECK(manual.find("`" + key + "`") != std::string::npos);
  }
}

}  // namespace interlock::result_json_test
