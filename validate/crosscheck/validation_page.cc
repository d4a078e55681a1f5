// A page of comparisons: errors by source, ops, devices, and what ran beside what was predicted.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/text.h"
#include "reports/charts/page_picture.h"
#include "reports/page/page_data.h"
#include "reports/page/page_frame.h"
#include "reports/page/training_page.h"
#include "reports/words/scale.h"
#include "validate/crosscheck/validation.h"

namespace interlock {
namespace {

constexpr std::int64_t kSpansOfPage = 1'000'000;

std::string error_of(double predicted, double measured) {
  return measured > 0 ? signed_percent(predicted / measured - 1) : kUnknown;
}

/// Returns the step times of one comparison: each row removes one source of error.
Grid sources_grid(const Comparison& c) {
  std::vector<double> times = {c.predicted.value(), c.measured.value(), c.replayed.value()};
  if (c.from_alone) times.push_back(c.from_alone->value());
  const Scale time = scale_of_seconds(times);
  Grid grid{{{"Step time", "", false}, {"", time.unit}, {"Error", "%"}}, {}};
  const auto add = [&](const std::string& words, Seconds value) {
    grid.rows.push_back(
        {{words}, {scaled(value.value(), time)}, {error_of(value.value(), c.measured.value())}});
  };
  add("predicted", c.predicted);
  if (c.from_alone) add("simulated with the times of ops alone", *c.from_alone);
  if (c.clock == OpClock::Wall) add("simulated with the times of ops in the run", c.replayed);
  grid.rows.push_back({{std::string("measured, ") + name_of(c.clock) + " clock"},
                       {scaled(c.measured.value(), time)},
                       {kUnknown}});
  return grid;
}

Grid ops_grid(const Comparison& c) {
  std::vector<double> times;
  for (const OpComparison& op : c.ops) times.push_back(op.measured.value());
  const Scale time = scale_of_seconds(times);
  Grid grid{{{"Op", "", false},
             {"Stage"},
             {"Loss of"},
             {"Predicted", time.unit},
             {"Alone", time.unit},
             {"In the run", time.unit},
             {"Predicted over alone", "%"},
             {"Run over alone", "%"}},
            {}};
  for (const OpComparison& op : c.ops) {
    const double alone = op.alone ? op.alone->value() : 0;
    grid.rows.push_back({{std::string(1, letter(op.kind))},
                         {std::to_string(op.stage)},
                         {std::to_string(op.loss)},
                         {scaled(op.predicted.value(), time)},
                         {op.alone ? scaled(alone, time) : kUnknown},
                         {scaled(op.measured.value(), time)},
                         {error_of(op.predicted.value(), alone)},
                         {error_of(op.measured.value(), alone)}});
  }
  return grid;
}

Grid devices_grid(const Comparison& c) {
  std::vector<double> peaks;
  for (const DeviceComparison& device : c.devices) peaks.push_back(device.predicted_peak.value());
  const Scale bytes = scale_of_bytes(peaks);
  Grid grid{{{"Device"},
             {"Predicted busy", "%"},
             {"Measured busy", "%"},
             {"Predicted memory", bytes.unit},
             {"Measured memory", bytes.unit},
             {"Held by tensors", bytes.unit}},
            {}};
  for (const DeviceComparison& device : c.devices) {
    grid.rows.push_back({{std::to_string(grid.rows.size())},
                         {fixed(100 * device.predicted_busy, 1)},
                         {fixed(100 * device.measured_busy, 1)},
                         {scaled(device.predicted_peak.value(), bytes)},
                         {scaled(device.measured_peak.value(), bytes)},
                         {device.held_peak ? scaled(device.held_peak->value(), bytes) : kUnknown}});
  }
  return grid;
}

std::string timeline_html(const std::string& words, const ScenarioResult& run, std::int64_t room) {
  const Excerpt excerpt = choose_excerpt(run.measurement, room);
  return "<div>" + tagged("h3", "", words) +
         data_html("application/scenario+json", page_data(run, excerpt)) + "</div>\n";
}

}  // namespace

std::string validation_html(const std::vector<Comparison>& comparisons,
                            const std::vector<ScenarioResult>& runs) {
  CHECK(runs.size() == 2 * comparisons.size(), "a prediction and a run for each comparison");
  Grid grid = validation_grid(comparisons);
  for (std::size_t i = 0; i < grid.rows.size(); ++i) {
    grid.rows[i].front().link = "#" + section_name(i);
  }
  std::string html = tagged("h1", "", "Predicted beside measured");
  for (const std::string& line : validation_summary(comparisons)) html += tagged("p", "", line);
  html += table_html(grid, "comparison");
  for (const std::string& note : validation_notes(comparisons)) {
    html += tagged("p", "class=\"note\"", note);
  }
  html +=
      "<div class=\"tools\" id=\"timelines\"><label><input type=\"checkbox\" id=\"same-scale\" "
      "checked> same time scale in all charts</label></div>\n";
  const std::int64_t room = kSpansOfPage / static_cast<std::int64_t>(runs.size());
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const Comparison& comparison = comparisons[i];
    html += "<section id=\"" + section_name(i) + "\" tabindex=\"-1\">" +
            tagged("h2", "", comparison.name);
    html += long_table_html(sources_grid(comparison), "sources");
    html += tagged("h3", "",
                   "Ops: medians over " + std::to_string(comparison.steps) + " measured steps") +
            long_table_html(ops_grid(comparison), "ops");
    html += tagged("h3", "", "Devices") + long_table_html(devices_grid(comparison), "devices");
    if (comparison.execution) html += execution_html(*comparison.execution);
    html += timeline_html("Predicted", runs[2 * i], room);
    html += timeline_html(std::string("Measured, ") + name_of(comparison.clock) + " clock",
                          runs[2 * i + 1], room);
    html += "</section>\n";
  }
  return html_page("Predicted beside measured", html);
}

}  // namespace interlock
