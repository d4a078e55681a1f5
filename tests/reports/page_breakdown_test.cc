// Breakdown bars: their parts add up to a step, and are what the result JSON says, to four digits.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "reports/report.h"
#include "tests/reports/support/handmade.h"

namespace interlock::page_breakdown_test {
namespace {

using Json = nlohmann::json;

/// The label of one bar, and its shares of a step by part.
struct DrawnBar {
  std::string label;
  std::map<std::string, double> parts;
};

std::string between(const std::string& text, const std::string& open, const std::string& close,
                    std::size_t from = 0) {
  const std::size_t begin = text.find(open, from);
  if (begin == std::string::npos) return "";
  const std::size_t end = text.find(close, begin + open.size());
  return text.substr(begin + open.size(), end - begin - open.size());
}

/// Bars by the words beside the pointer; each part is as high as these say.
std::vector<DrawnBar> bars_in(const std::string& page) {
  constexpr double kHeight = 190;  // of a whole step
  const std::string figure = between(page, "<div class=\"panels\">", "</figure>");
  std::vector<DrawnBar> bars;
  for (std::size_t at = figure.find("<rect x="); at != figure.npos;
       at = figure.find("<rect x=", at + 1)) {
    const std::string rect = figure.substr(at, figure.find("</rect>", at) - at);
    const std::string label = between(rect, "<title>device ", ", ");
    if (bars.empty() || bars.back().label != label) bars.push_back({label, {}});
    const std::string part = between(rect, "device " + label + ", ", ", share of a step (%): ");
    const double share = std::stod(between(rect, "share of a step (%): ", "<")) / 100;
    INFO(rect);
    CHECK(std::stod(between(rect, "height=\"", "\"")) / kHeight ==
          doctest::Approx(share).epsilon(1e-4).scale(1));
    bars.back().parts[part] = share;
  }
  return bars;
}

/// How pages call the keys of results.
const std::map<std::string, std::string> kWords = {{"forward", "forward"},
                                                   {"backward_input", "backward, input half"},
                                                   {"backward", "backward, full"},
                                                   {"backward_weight", "backward, weight half"},
                                                   {"head", "auxiliary head"},
                                                   {"recompute", "recompute"},
                                                   {"extra", "extra traversals"},
                                                   {"update", "optimiser update"},
                                                   {"fill", "fill"},
                                                   {"drain", "drain"},
                                                   {"activation", "waiting for activations"},
                                                   {"gradient", "waiting for gradients"},
                                                   {"peers", "waiting for other devices"},
                                                   {"room", "waiting for room in a queue"},
                                                   {"message", "messages on their way"},
                                                   {"unknown", "between ops"},
                                                   {"exchange", "exchanges inside ops"}};

/// A bar as result JSON has it.
std::map<std::string, double> parts_of(const Json& device, double step) {
  std::map<std::string, double> parts;
  for (const auto& [key, share] : device["time_shares"].items()) {
    if (key == "exposed_communication" || key == "bubble") continue;
    if (share.get<double>() > 0) parts[kWords.at(key)] = share.get<double>();
  }
  for (const auto& [key, seconds] : device["bubble_s"].items()) {
    if (seconds.get<double>() > 0) parts[kWords.at(key)] = seconds.get<double>() / step;
  }
  return parts;
}

ScenarioResult run(const std::string& text) {
  return run_scenario(load_questions(parse_json(text, "four.json")).front(), true);
}

std::string four_stages(const std::string& training) {
  return R"({"name": "four", "model": {"kind": "profile", "modules": [{"repeat": 4,
    "forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms", "head": "0.5 ms",
    "output": "4 MiB", "parameters": "4 MiB"}]},
    "cluster": {"kind": "uniform", "devices": 4, "memory": "80 GiB",
      "link": {"bandwidth": "10 GB/s", "latency": "10 us"}}, "training": )" +
         training + "}";
}

void check_bars(const ScenarioResult& result) {
  const Json json = Json::parse(result_json(result));
  const std::vector<DrawnBar> bars = bars_in(html_report({result}));
  REQUIRE(bars.size() == json["devices"].size() + 1);
  CHECK(bars[0].label == "mean");
  std::map<std::string, double> mean;
  for (std::size_t d = 0; d < json["devices"].size(); ++d) {
    const Json& device = json["devices"][d];
    const DrawnBar& bar = bars[d + 1];
    INFO(result.plan.question.name << ", " << bar.label << ": " << device["time_shares"].dump()
                                   << " " << device["bubble_s"].dump());
    CHECK(bar.label == std::to_string(device["device"].get<int>()));
    const auto expected = parts_of(device, json["step_time_s"].get<double>());
    CHECK(bar.parts.size() == expected.size());
    double sum = 0;
    for (const auto& part : expected) {
      const auto& [words, share] = part;
      INFO(part.first);
      REQUIRE(bar.parts.count(words) == 1);
      CHECK(bar.parts.at(words) == doctest::Approx(share).epsilon(1e-4));
      sum += bar.parts.at(words);
      mean[words] += share / static_cast<double>(json["devices"].size());
    }
    CHECK(sum == doctest::Approx(1).epsilon(1e-4));
  }
  for (const auto& part : mean) {
    INFO(part.first);
    CHECK(bars[0].parts.at(part.first) == doctest::Approx(part.second).epsilon(1e-4));
  }
}

TEST_CASE("the parts of a bar are those of the result JSON, and add up to a step") {
  check_bars(run(four_stages(R"({"strategy": "global", "schedule": "1f1b", "micro_batches": 6})")));
  check_bars(run(four_stages(R"({"strategy": "pairwise", "micro_batches": 4})")));
  check_bars(run(four_stages(R"({"strategy": "local"})")));
  check_bars(
      run(four_stages(R"({"strategy": "global", "schedule": "zb-h1", "micro_batches": 8})")));
}

TEST_CASE("what ops wait for inside, exchanges of a tensor group, is a part of its own") {
  const ScenarioResult result = run(R"({"name": "tensor", "model": "gpt2-medium",
    "cluster": {"machine": "dgx-a100-80g", "nodes": 2}, "parallel": {"pipeline": 2, "tensor": 8},
    "training": {"strategy": "global", "schedule": "1f1b", "global_batch_size": 8,
      "micro_batch_size": 1}})");
  check_bars(result);
  const std::vector<DrawnBar> bars = bars_in(html_report({result}));
  CHECK(bars.at(0).parts.count("exchanges inside ops") == 1);
}

TEST_CASE("without causes idle time is exposed communication and a bubble") {
  ScenarioResult result = two_devices();
  auto& time = result.measurement.metrics.devices[0].time;
  time[static_cast<std::size_t>(TimeUse::Forward)] = 1.0 / 3;
  time[static_cast<std::size_t>(TimeUse::Exposed)] = 1.0 / 6;
  time[static_cast<std::size_t>(TimeUse::Bubble)] = 0.5;
  const Json device = Json::parse(result_json(result))["devices"][0];
  REQUIRE(device["bubble_s"].is_null());
  const std::vector<DrawnBar> bars = bars_in(html_report({result}));
  REQUIRE(bars.size() == 2);  // nothing is told of device 1
  double sum = 0;
  for (const auto& [words, share] : bars[1].parts) sum += share;
  CHECK(sum == doctest::Approx(1).epsilon(1e-4));
  CHECK(bars[1].parts.at("bubble") ==
        doctest::Approx(device["time_shares"]["bubble"].get<double>()).epsilon(1e-4));
}

TEST_CASE("of many devices the busiest and the least busy are drawn, and the mean is of all") {
  ScenarioResult result = pipeline_run({100, 8, 2});
  std::vector<DeviceMetrics>& devices = result.measurement.metrics.devices;
  for (int rank = 0; rank < 100; ++rank) {  // device 99 is the busiest
    auto& time = devices[static_cast<std::size_t>(rank)].time;
    time.fill(0);
    const double busy = 0.005 * (rank + 1);
    devices[static_cast<std::size_t>(rank)].busy = busy;
    time[static_cast<std::size_t>(TimeUse::Forward)] = busy;
    time[static_cast<std::size_t>(TimeUse::Bubble)] = 1 - busy;
  }
  const std::string page = html_report({result});
  const std::vector<DrawnBar> bars = bars_in(page);
  REQUIRE(bars.size() == 65);
  CHECK(bars[1].label == "0");
  CHECK(bars[32].label == "31");
  CHECK(bars[33].label == "68");
  CHECK(bars[64].label == "99");
  INFO("mean of 0.005 (1 + ... + 100) / 100 = 0.2525");
  CHECK(bars[0].parts.at("forward") == doctest::Approx(0.2525));
  CHECK(page.find("Of 100 devices: their mean, the 32 busiest and the 32 least busy") !=
        std::string::npos);
}

}  // namespace
}  // namespace interlock::page_breakdown_test
