// Layouts in reports: degrees in words, folding, places of devices, collectives on the page.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "reports/report.h"
#include "reports/words/mesh_words.h"
#include "tests/reports/support/handmade.h"
#include "tests/reports/support/page_reader.h"

namespace interlock::layout_report_test {
namespace {

using Json = nlohmann::json;

Question laid(const Coordinates& degrees) {
  Question scenario;
  scenario.layout.mesh.degrees = degrees;
  return scenario;
}

TEST_CASE("a layout is told in one line, its degrees from the outside in") {
  Question scenario = laid({8, 1, 16, 8});
  const std::string order = ", order tensor, context, data, pipeline";
  CHECK(layout_words(scenario) == "pipeline 8 x data 16 x tensor 8" + order);
  scenario.layout.sharding = {.tensor = 8, .sequence_parallel = true};
  scenario.layout.data_parallel.zero_stage = 1;
  scenario.layout.mesh.shard = 16;
  CHECK(layout_words(scenario) ==
        "pipeline 8 x data 16 x tensor 8, sequence parallel, ZeRO 1" + order);

  scenario = laid({4, 2, 6, 1});
  scenario.layout.sharding = {
      .tensor = 4, .tensor_layout = TensorLayout::TwoD, .context = 2, .expert = 3};
  scenario.layout.mesh.expert = 3;
  scenario.layout.data_parallel.zero_stage = 3;
  scenario.layout.mesh.shard = 4;
  scenario.layout.mesh.order = {Dimension::Data, Dimension::Tensor, Dimension::Context,
                                Dimension::Pipeline};
  CHECK(layout_words(scenario) ==
        "data 6 x context 2 x tensor 4, 2d tensors, ring of contexts, experts on 3, ZeRO 3 in "
        "shards of 4, order data, tensor, context, pipeline");
  CHECK(layout_words(laid({1, 1, 1, 8})) == "");
}

TEST_CASE("the machine's devices are counted, and which of them were simulated") {
  ScenarioResult result = two_devices();
  CHECK(device_words(result) == "2 devices of toy-node");
  result.plan.question.layout.mesh.degrees = {8, 1, 16, 2};
  CHECK(device_words(result) ==
        "256 devices of toy-node (2 simulated: 1 of 16 data, 1 of 8 tensor)");
  result.plan.unfolded = Unfolded{true, false, false, true};
  CHECK(device_words(result) == "256 devices of toy-node (2 simulated: 1 of 16 data)");
  result.plan.unfolded = Unfolded{true, true, true, true};
  CHECK(device_words(result) == "256 devices of toy-node");
}

const std::string kMesh = R"({"pipeline": 2, "data": 2, "tensor": 2,
                             "order": ["data", "pipeline", "tensor", "context"]})";

ScenarioResult run_of(const std::string& parallel, const std::string& fold,
                      const std::string& devices = "8") {
  const JsonValue document = parse_json(R"({
    "model": {"kind": "transformer", "layers": 2, "hidden_size": 256, "attention_heads": 4,
              "vocab_size": 512, "sequence_length": 128},
    "cluster": {"machine": "dgx-a100-80g", "devices": )" +
                                            devices + R"(},
    "parallel": )" + parallel + R"(,
    "training": {"strategy": "global", "schedule": "1f1b", "global_batch_size": 8,
                 "micro_batches": 2, "steps": 1},
    "simulate": {"fold": )" + fold + "}}",
                                        "test.json");
  return run_scenario(load_questions(document).front(), true);
}

TEST_CASE("a folded run names its devices as the machine does") {
  const ScenarioResult result = run_of(kMesh, R"(["data", "tensor"])");
  const Json json = Json::parse(result_json(result));
  CHECK(json["devices_total"] == 8);
  CHECK(json["devices_simulated"] == 2);
  CHECK(json["folded"] == Json{{"data", 2}, {"tensor", 2}});
  CHECK(json["parallel"]["order"] == Json{"data", "pipeline", "tensor", "context"});
  // Data coordinates change first: the second pipeline rank begins behind both replicas.
  CHECK(json["devices"][0]["device"] == 0);
  CHECK(json["devices"][1]["device"] == 2);
  CHECK(json["devices"][1]["coordinates"] ==
        Json{{"pipeline", 1}, {"data", 0}, {"context", 0}, {"tensor", 0}});
  const double rate = json["samples_per_s"];
  CHECK(json["samples_per_s_per_device"].get<double>() == doctest::Approx(rate / 8));
  CHECK(terminal_table({result}, {.width = 200}).find("8 devices of dgx-a100-80g (2 simulated") !=
        std::string::npos);
}

TEST_CASE("text and result say how often workers that train apart exchange a fragment") {
  const auto of = [](const std::string& more) {
    return run_of(R"({"data": 2, "outer": {"every": 12, "fragments": 3)" + more + "}}", "\"auto\"",
                  "2");
  };
  const auto text = [](const ScenarioResult& result) {
    return terminal_table({result}, {.width = 200});
  };
  const ScenarioResult once = of(""), often = of(R"(, "overlap": 4, "network_share": 1)");
  CHECK(Json::parse(result_json(once))["outer_exchanges"] == 3);
  CHECK(text(once).find("3 in 12 steps") != std::string::npos);
  CHECK(text(once).find("on their way") == std::string::npos);
  CHECK(Json::parse(result_json(often))["outer_exchanges"] == 9);  // 3 x 12 / 4: each is back
  CHECK(text(often).find("at most 3 of 3 fragments on their way") != std::string::npos);
  const ScenarioResult together = run_of(R"({"data": 2})", "\"auto\"", "2");
  CHECK(Json::parse(result_json(together))["outer_exchanges"].is_null());
  CHECK(text(together).find("Outer exchanges") == std::string::npos);
}

TEST_CASE("links of a folded run stand for all that carry something unfolded") {
  const auto total = [](const Json& json, const char* key) {
    double sum = 0;
    for (const Json& link : json["links"]) {
      const double number = link["stands_for"];
      sum += std::string(key) == "bytes" ? number * link["bytes"].get<double>() : number;
    }
    return sum;
  };
  const Json folded = Json::parse(result_json(run_of(kMesh, R"(["data", "tensor"])")));
  const Json whole = Json::parse(result_json(run_of(kMesh, R"("none")")));
  CHECK(folded["links"].size() < whole["links"].size());
  CHECK(total(folded, "links") == static_cast<double>(whole["links"].size()));
  CHECK(total(folded, "bytes") == doctest::Approx(total(whole, "bytes")).epsilon(1e-9));
}

TEST_CASE("unfolded, every device of the machine has its place") {
  const Json json = Json::parse(result_json(run_of(kMesh, R"("none")")));
  CHECK(json["devices_simulated"] == 8);
  CHECK(json["folded"] == Json::object());
  std::vector<bool> seen(8, false);
  for (const Json& device : json["devices"]) {
    const Json& at = device["coordinates"];
    const int number = device["device"];
    CHECK(number ==
          at["data"].get<int>() + 2 * (at["pipeline"].get<int>() + 2 * at["tensor"].get<int>()));
    seen.at(number) = true;
  }
  CHECK(seen == std::vector<bool>(8, true));
}

/// The data of the page's one scenario.
Json page_of(const ScenarioResult& result) {
  return scenarios_of_page(html_report({result})).at(0).json;
}

TEST_CASE("the page has every collective of the trace, in the lane of its group") {
  const ScenarioResult result = run_of(kMesh, R"("none")");
  const Json page = page_of(result);
  REQUIRE(page["groups"].size() > 0);
  std::size_t shown = 0;
  int data_groups = 0;
  for (const Json& lane : page["groups"]) {
    shown += lane["gap"][1].get<std::size_t>();
    if (lane["axis"] == "data") ++data_groups;
  }
  CHECK(shown == result.measurement.log.collectives.size());
  CHECK(data_groups == 4);  // one for each pair of pipeline and tensor coordinates
  CHECK(page["collectives"].size() == result.measurement.program.collectives.size());
  CHECK(page["ranks"].size() == 8);
}

TEST_CASE("busy time on the page leaves out what an op waits for inside") {
  const ScenarioResult result = run_of(R"({"pipeline": 1, "tensor": 4})", R"("auto")", "4");
  const Json page = page_of(result);
  const auto& ops = result.measurement.program.ops;
  bool some = false;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    CHECK(page["ops"][i]["communication"] == ops[i].communication.value());
    some = some || ops[i].communication > Seconds(0);
  }
  CHECK(some);  // sums of activations in the tensor group
}

}  // namespace
}  // namespace interlock::layout_report_test
