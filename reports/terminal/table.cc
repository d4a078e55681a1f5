// Table: results for a terminal, so that a person sees at once what holds a run back.
// SPDX-License-Identifier: Apache-2.0

#include "reports/terminal/layout.h"
#include "reports/words/mesh_words.h"

namespace interlock {
namespace {

constexpr std::size_t kMostDevicesInTable = 24;

std::string single_table(const ScenarioResult& result, const TableStyle& style) {
  std::string text = paragraph(result.plan.question.name, Ink::Strong, style);
  text += paragraph(subtitle(result), Ink::Faint, style);
  const std::string layout = layout_words(result.plan.question);
  if (!layout.empty()) text += paragraph(layout, Ink::Faint, style);
  text += "\n";
  text += headline_lines(all_headlines(result), style) + "\n";
  const Metrics& metrics = result.measurement.metrics;
  const Grid devices = device_grid(result);
  const Grid shown = shorten(devices, kMostDevicesInTable,
                             {metrics.limiting_device, fullest_device(metrics).rank});
  text += lay_out(shown, style);
  if (shown.rows.size() < devices.rows.size()) {
    text += paragraph(rows_left_out(shown, devices), Ink::Faint, style);
  }
  const auto lines = warnings(result);
  if (!lines.empty()) text += "\n";
  for (const auto& line : lines) text += paragraph(line, Ink::Alarm, style);
  return text;
}

}  // namespace

std::string terminal_table(const std::vector<ScenarioResult>& results, const TableStyle& style) {
  CHECK(!results.empty(), "a table needs a result");
  if (results.size() == 1) return single_table(results[0], style);
  const std::string common = common_name(results);
  std::string text = common.empty() ? "" : paragraph(common, Ink::Strong, style) + "\n";
  const Grid grid = comparison_grid(results);
  text += lay_out(grid, style) + "\n";
  text += paragraph(comparison_note(), Ink::Faint, style);
  std::string notes;
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (const auto& line : warnings(results[i])) {
      notes += paragraph(grid.rows[i][0].text + ": " + line, Ink::Alarm, style);
    }
  }
  return notes.empty() ? text : text + "\n" + notes;
}

}  // namespace interlock
