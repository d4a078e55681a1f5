// Swarms in reports: figures, columns and keys.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "reports/report.h"
#include "tests/reports/support/handmade.h"

namespace interlock::swarm_report_test {
namespace {

using Json = nlohmann::json;

/// The two devices as stages of a swarm of five peers: 12 micro-batches of 2 samples a second.
ScenarioResult swarm() {
  ScenarioResult result = two_devices();
  result.plan.question.training().graph.samples_per_micro_batch = 2;
  SwarmResult swarm;
  swarm.inputs.peers.resize(5);
  swarm.inputs.in_flight = 8;
  swarm.inputs.samples_per_micro_batch = 2;
  SwarmStatistics& statistics = swarm.statistics;
  statistics = {.seeds = 3, .stage_utilisation = {0.5, 0.75}, .peer_busy = {1, 0, 0, 0.5, 1}};
  statistics.micro_batches_per_s = {12, 1, 11, 12, 13};
  statistics.share_of_best.mean = 0.9;
  statistics.failures.mean = 4;
  statistics.joins.mean = 3;
  statistics.moves.mean = 2;
  statistics.redone.mean = 0.125;
  statistics.traffic = {Bytes(1), Bytes(2), Bytes(3), Bytes(4)};
  result.swarm = swarm;
  return result;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("the table of a swarm says its rate and what changed, and others nothing of it") {
  const std::string table = terminal_table({swarm()}, {});
  INFO(table);
  CHECK(says(table, "24 samples/s"));
  CHECK(says(table, "mean of 3 runs; 5th to 95th percentile 22 to 26"));
  CHECK(says(table, "computing 50.0% to 75.0%"));
  CHECK(says(table, "by stage; 90.0% of the"));
  CHECK(says(table, "3 joins, 2 moves; 12.5% of all ops run again"));
  CHECK(!says(terminal_table({two_devices()}, {}), "Swarm"));
}

TEST_CASE("a comparison has columns for swarms as soon as there is one") {
  const std::string table = terminal_table({swarm(), two_devices()}, {.width = 200});
  INFO(table);
  CHECK(says(table, "Of best"));
  CHECK(says(table, "90.0"));
  CHECK(!says(terminal_table({two_devices(), two_devices()}, {.width = 200}), "Of best"));
}

void collect_keys(const Json& json, std::set<std::string>& keys) {
  for (const auto& [key, value] : json.items()) {
    if (json.is_object()) keys.insert(key);
    if (value.is_structured()) collect_keys(value, keys);
  }
}

TEST_CASE("the keys of a swarm are those of the manual, and null without one") {
  const Json json = Json::parse(result_json(swarm()))["swarm"];
  CHECK(json["peers"] == 5);
  CHECK(json["samples_per_s"]["mean"] == 24);
  CHECK(json["micro_batches_per_s"]["p95"] == 13);
  CHECK(json["traffic_bytes"]["state"] == 4);
  CHECK(json["stage_utilisation"] == Json({0.5, 0.75}));
  std::set<std::string> keys;
  collect_keys(json, keys);
  CHECK(keys.size() > 25);
  const std::string manual = read_file(std::string(DOCS_FOLDER) + "/result.md");
  for (const std::string& key : keys) {
    CAPTURE(key);
    CHECK(says(manual, "`" + key + "`"));
  }
  CHECK(Json::parse(result_json(two_devices()))["swarm"].is_null());
}

}  // namespace
}  // namespace interlock::swarm_report_test
