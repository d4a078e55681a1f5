// HTML report: self-contained, safe against any name, and open about what it leaves out.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "reports/headlines/headlines.h"
#include "reports/page/page_sections.h"
#include "reports/report.h"
#include "tests/reports/support/handmade.h"
#include "tests/reports/support/page_reader.h"

namespace interlock::html_test {
using Json = nlohmann::json;

namespace {

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("the page asks no server for anything") {
  const std::string page = html_report({two_devices(), pipeline_run({})});
  for (const char* reach : {"http:", "https:", "src=", "@import", "fetch(", "XMLHttpRequest",
                            "WebSocket", "importScripts"}) {
    CAPTURE(reach);
    CHECK(page.find(reach) == std::string::npos);
  }
  INFO("only to itself");
  CHECK(count(page, "href=") == count(page, "href=\"#"));
  CHECK(count(page, "url(") == count(page, "url(#"));
  CHECK(page.find("default-src 'none'") != std::string::npos);  // and the browser would refuse
  CHECK(page.find("{{") == std::string::npos);
}

TEST_CASE("names cannot break out of the page") {
  const std::string evil = "</script><script>alert(1)</script><!--\"'&<img onerror=x>\xff";
  auto result = two_devices();
  result.plan.question.name = result.plan.question.training().graph.name =
      result.plan.question.cluster.name = evil;
  result.measurement.metrics.links[0].name = evil;
  const std::string page = html_report({result, result});
  CHECK(page.find("<script>alert") == std::string::npos);
  CHECK(page.find("<img") == std::string::npos);
  CHECK(page.find("<!--") == std::string::npos);
  CHECK(count(page, "<script") == 3);  // two of data, one of code
  CHECK(count(page, "</script>") == 3);
  CHECK(scenarios_of_page(page)[0].json["name"].get<std::string>().substr(0, 10) == "</script><");
}

TEST_CASE("spans, messages and memory reach the page unchanged") {
  const PageScenario scenario = scenarios_of_page(html_report({two_devices()})).at(0);
  const Json& data = scenario.json;
  REQUIRE(data["ranks"].size() == 2);
  const Json& spans = data["ranks"][0]["spans"];
  const std::vector<double> starts = scenario.span_starts(spans);
  REQUIRE(starts.size() == 2);
  CHECK(starts[0] == 0);
  CHECK(starts[1] == doctest::Approx(4e-3).epsilon(1e-7));
  CHECK(scenario.column<std::uint32_t>(spans["op"]) == std::vector<std::uint32_t>{0, 1});
  CHECK_FALSE(spans.contains("duration"));  // as planned: the op's own
  CHECK(data["ops"][0]["letter"] == "F");
  CHECK(data["ops"][0]["duration"] == 0.001);
  REQUIRE(data["wires"].size() == 2);
  CHECK(scenario.column<float>(data["wires"][0]["gap"]) == std::vector<float>{0.75e-3F});
  CHECK(data["wires"][0]["from"] == 0);
  CHECK(data["wires"][0]["to"] == 1);
  const Json& memory = data["ranks"][0]["memory"];
  const double gib = 1024.0 * 1024 * 1024;
  CHECK(memory["at_begin"] == Json::array({3 * gib, 0, 3 * gib, 6 * gib, 0, 0, 0, 0, 0}));
  CHECK(memory["pairs"] == Json::array({{4, 4 * gib}, {4, -4 * gib}}));
  const auto gaps = scenario.column<float>(memory["gap"]);
  REQUIRE(gaps.size() == 2);
  CHECK(gaps[0] == 0);
  CHECK(gaps[1] == doctest::Approx(6e-3).epsilon(1e-3));
}

TEST_CASE("durations that differ from the plan are kept") {
  auto result = two_devices();
  result.measurement.log.spans[3].end = Seconds(0.0061);
  const PageScenario scenario = scenarios_of_page(html_report({result})).at(0);
  const auto durations = scenario.column<float>(scenario.json["ranks"][0]["spans"]["duration"]);
  CHECK(durations.at(1) == doctest::Approx(0.0021));
}

TEST_CASE("a run beyond a million ops is cut to whole steps, and the page says so") {
  // A step has 4 * (2 * 2048 + 1) = 16,388 ops: 61 steps make 999,668, 62 would be too many.
  const std::string page = html_report({pipeline_run({4, 2048, 63})});
  CHECK(page.find("The charts hold measured steps 1 to 61 of 63") != std::string::npos);
  std::int64_t spans = 0;
  const PageScenario scenario = scenarios_of_page(page).at(0);
  for (const Json& rank : scenario.json["ranks"]) {
    spans += rank["spans"]["gap"][1].get<std::int64_t>();
  }
  CHECK(spans >= 999'668);
  CHECK(spans <= 999'668 + 4);  // ops that were running when the window began
  CHECK(html_report({pipeline_run({})}).find("The charts hold") == std::string::npos);
}

TEST_CASE("a large sweep is a row each in the table, and the page says how many it draws") {
  std::vector<ScenarioResult> results(kMostDrawn, two_devices());
  CHECK(html_report(results).find("Drawn below") == std::string::npos);
  ScenarioResult without_log = two_devices();
  without_log.measurement.log = {};
  without_log.plan.question.name = "the last one";
  results.push_back(without_log);
  const std::string page = html_report(results);
  CHECK(scenarios_of_page(page).size() == kMostDrawn);
  CHECK(page.find("Drawn below: 48 scenarios of 49:") != std::string::npos);
  // In the table, and at its point against memory and against communication.
  CHECK(count(page, "the last one") == 3);
}

TEST_CASE("the first result, the fastest and the Pareto front are drawn wherever they stand") {
  // 100 results of one memory and throughput; 70 is faster, 80 smaller and as fast as the first,
  // 90 the fastest of all but too large.
  std::vector<ScenarioResult> results(100, two_devices());
  const auto metrics = [&](std::size_t i) -> Metrics& { return results[i].measurement.metrics; };
  const MetricRow& throughput = common_rate(results);
  const auto faster = [&](std::size_t i, double ratio) {
    Metrics& changed = metrics(i);
    changed.step_time = Seconds(changed.step_time.value() / ratio);
    if (changed.samples_per_s) *changed.samples_per_s *= ratio;
    if (changed.tokens_per_s) *changed.tokens_per_s *= ratio;
  };
  faster(70, 2);
  for (DeviceMetrics& device : metrics(80).devices)
    device.peak_memory = Bytes(0.5 * device.peak_memory.value());
  faster(90, 4);
  metrics(90).fits_in_memory = false;
  REQUIRE(*number_of(throughput, metrics(70)) == 2 * *number_of(throughput, metrics(0)));
  const PageSections sections = page_sections(results);
  std::vector<std::size_t> open, drawn;
  for (std::size_t i = 0; i < 100; ++i) {
    if (sections.open[i]) open.push_back(i);
    if (sections.drawn[i]) drawn.push_back(i);
  }
  CHECK(open == std::vector<std::size_t>{0, 70, 80});
  CHECK(drawn.size() == kMostDrawn);
  CHECK(drawn[45] == 45);
  CHECK(drawn[46] == 70);
  CHECK(drawn[47] == 80);
  CHECK(sections.marks[70] == "fastest");
  CHECK(sections.marks[80] == "Pareto front");
  CHECK(sections.marks[0].empty());
}

TEST_CASE("few results are all open") {
  const PageSections sections = page_sections(std::vector(4, two_devices()));
  CHECK(sections.open == std::vector(4, true));
}

TEST_CASE("the page shows figures, devices and what is wrong") {
  auto result = pipeline_run({});
  result.measurement.metrics.steady = false;
  const std::string page = html_report({result});
  for (const char* words : {"34.4 ms", "29.1 steps/s", "71.2%", "Limiting device", "Not steady",
                            "40.0 GiB on device 0", "Devices", "Links (6)"}) {
    CAPTURE(words);
    CHECK(page.find(words) != std::string::npos);
  }
  CHECK(page.find("same-scale\" checked") == std::string::npos);  // nothing to share it with
  CHECK(html_report({result, result}).find("same-scale\" checked") != std::string::npos);
}

TEST_CASE("a figure whose note is long has a row of the page for itself") {
  const auto page = [](const std::string& basis) {
    ScenarioResult result = two_devices();
    result.confidence.range = {.low = Seconds(1), .high = Seconds(2), .basis = basis};
    return html_report({result});
  };
  CHECK(page("two runs").find("<div class=\"wide\">") == std::string::npos);
  CHECK(page(std::string(200, 'a')).find("<div class=\"wide\"><dt>Range") != std::string::npos);
}

TEST_CASE("memory changes of one instant stay together, whatever the rounding of times") {
  auto result = two_devices();
  auto& memory = result.measurement.log.memory;
  memory.clear();
  for (int i = 1; i <= 1000; ++i) {
    const Seconds now(i * 6e-3 / 1003);
    memory.push_back({now, 64, 0, MemoryClass::Stash});
    memory.push_back({now, -64, 0, MemoryClass::Stash});
  }
  const PageScenario scenario = scenarios_of_page(html_report({result})).at(0);
  const auto gaps = scenario.column<float>(scenario.json["ranks"][0]["memory"]["gap"]);
  REQUIRE(gaps.size() == 2000);
  double time = 0;
  for (std::size_t i = 0; i < gaps.size(); i += 2) {
    CHECK(gaps[i] > 0);
    CHECK(gaps[i + 1] == 0);
    time += gaps[i];
  }
  CHECK(time == doctest::Approx(1000 * 6e-3 / 1003).epsilon(1e-6));
}

}  // namespace interlock::html_test
