// Reports of mixed clusters name the kind of a device, and its own memory.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/headlines/headlines.h"
#include "reports/result/result_json.h"

namespace interlock::mixed_report_test {
namespace {

using Json = nlohmann::ordered_json;

/// Two stages; the second device has too little memory.
ScenarioResult result() {
  const JsonValue document = parse_json(R"({
    "model": {"kind": "mlp", "input_size": 8192, "layers": 3, "hidden_size": 8192, "classes": 8192},
    "cluster": {"machines": [
      {"machine": "pcie-rtx-4090", "devices": 1},
      {"machine": "pcie-rtx-3090", "device": {"base": "rtx-3090", "memory": "1 GiB"},
       "devices": 1}]},
    "partition": [2, 2], "parallel": {"pipeline": 2},
    "training": {"strategy": "global", "schedule": "gpipe", "global_batch_size": 8}})",
                                        "two.json");
  return run_scenario(load_questions(document).front(), false);
}

TEST_CASE("a device of a mixed cluster that lacks memory is named with its kind and its memory") {
  const ScenarioResult mixed = result();
  const std::vector<std::string> lines = warnings(mixed);
  const auto starts = [](const std::string& line) {
    return line.find("Does not fit: device 1 (") == 0 &&
           line.find("more than its 1.00 GiB") != std::string::npos;
  };
  CHECK(std::count_if(lines.begin(), lines.end(), starts) == 1);
}

TEST_CASE("tables and results of mixed clusters say which kind each device is") {
  const ScenarioResult mixed = result();
  const Grid grid = device_grid(mixed);
  CHECK(grid.columns.at(1).head == "Kind");
  CHECK(grid.rows.at(0).at(1).text == "RTX-4090-24GB");
  const Json json = Json::parse(result_json(mixed));
  CHECK(json["devices"][0]["kind"] == "RTX-4090-24GB");
  CHECK(json["devices"][1]["memory_capacity_bytes"] == 1024LL * 1024 * 1024);
  CHECK(json["memory_capacity_bytes"] == 1024LL * 1024 * 1024);
  CHECK_FALSE(json["fits_in_memory"].get<bool>());
}

}  // namespace
}  // namespace interlock::mixed_report_test
