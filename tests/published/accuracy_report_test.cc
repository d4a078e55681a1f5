// Reports of accuracy: what terminal, Markdown, JSON and the page say of two rows.
// SPDX-License-Identifier: Apache-2.0
#include "validate/published/accuracy_report.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace interlock::accuracy_report_test {
namespace {

/// Two values of 2 s: one predicted 10 % too long, one refused.
Accuracy two_rows() {
  MeasuredTable table{.name = "times | memory", .targets = {{Measurand::StepTime, {.mape = 0.05}}}};
  table.rows = {
      {.id = "</script>a", .remark = "a slow disk", .measured = {{Measurand::StepTime, 2}}},
      {.id = "b", .measured = {{Measurand::StepTime, 2}}}};
  MeasurementFile file{.name = "lab", .title = "A lab", .paper = "We, 2026", .notes = {"a note"}};
  file.tables.push_back(std::move(table));
  RowPrediction first{.values = {.step_time = 2.2, .fits = false}, .choice = "two chunks"};
  return judge({file}, {{{first, {.problem = "lab.json:9: /model: unknown"}}}});
}

bool has(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CAPTURE(part);
  return text.find(part) != std::string::npos;
}

TEST_CASE("the terminal has figures, the worst row with its remark, and what was refused") {
  const std::string text = accuracy_table(two_rows(), {.width = 200}, false);
  CHECK(has(text, "lab: times | memory"));
  CHECK(has(text, "mean≤5 ✗"));
  CHECK(has(text, "+10.0"));
  CHECK(has(text, "a slow disk; best: two chunks; is predicted not to fit in memory"));
  CHECK(has(text, "lab.json:9: /model: unknown"));
  CHECK(has(text, "Speed: 1 values that nothing was fitted on, MAPE 10.0%"));
  CHECK(has(text, "Furthest off"));
  CHECK(accuracy_table(two_rows(), {.width = 200}, true).starts_with("All\n"));
  const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
  INFO("the summary is the last that a terminal shows");
  CHECK((last.starts_with("Speed: ") || last.starts_with("Memory: ")));
}

TEST_CASE("Markdown keeps bars of names out of its tables, and tells command, date and sources") {
  const std::string text = accuracy_markdown(two_rows(), "interlock validate published", "today");
  CHECK(has(text, "| lab: times \\| memory | step_time_s | 1 | 0 | 1 | 10.0 |"));
  CHECK(has(text, "Written by `interlock validate published` on today."));
  CHECK(has(text, "### lab: A lab"));
  CHECK(has(text, "- a note"));
}

TEST_CASE("JSON has every value and its scenario") {
  const auto json = nlohmann::json::parse(accuracy_json(two_rows()));
  CHECK(json["format"] == "interlock-accuracy/1");
  CHECK(json["speed"]["errors"]["mape"].get<double>() == doctest::Approx(0.1));
  REQUIRE(json["values"].size() == 2);
  CHECK(json["values"][0]["error"].get<double>() == doctest::Approx(0.1));
  CHECK(json["values"][0]["choice"] == "two chunks");
  CHECK(json["values"][0]["fits"] == false);
  CHECK(json["values"][1]["predicted"].is_null());
  CHECK(json["values"][1]["problem"] == "lab.json:9: /model: unknown");
  CHECK(json["figures"][0]["missed"][0] == "mean over 5.0 %");
}

TEST_CASE("the page draws what was predicted, and no name of a row is markup") {
  const std::string page = accuracy_html(two_rows());
  CHECK(has(page, "<div data-name=\"step_time_s\">"));
  CHECK(has(page,
            "lab: &lt;/script&gt;a, times | memory, error +10.0 %, a slow disk: measured "
            "step_time_s 2, predicted step_time_s 2.2"));
  CHECK(!has(page, "lab: b, times"));  // nothing is predicted for it
  CHECK(!has(page, "</script>a"));
}

}  // namespace
}  // namespace interlock::accuracy_report_test
