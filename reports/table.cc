// Table: results for a terminal, so that a person sees at once what holds a run back.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "reports/encode.h"
#include "reports/layout.h"

namespace interlock {
namespace {

constexpr std::size_t kMostDevices = 24;

std::string paragraph(const std::string& text, Ink ink, const TableStyle& style) {
  std::string lines;
  for (const auto& line : wrap(text, static_cast<std::size_t>(std::max(style.width, 60)))) {
    lines += paint(line, ink, style) + "\n";
  }
  return lines;
}

/// `label   value   note`, one figure a line; a note that does not fit goes on below itself.
std::string figure_lines(const std::vector<Figure>& figures, const TableStyle& style) {
  std::size_t label_width = 0, value_width = 0;
  for (const auto& figure : figures) {
    label_width = std::max(label_width, display_width(figure.label));
    value_width = std::max(value_width, display_width(figure.value));
  }
  const std::size_t indent = label_width + value_width + 4;
  const auto width = static_cast<std::size_t>(std::max(style.width, 60));
  const std::size_t room = std::max<std::size_t>(width - std::min(indent, width), 16);
  std::string text;
  for (const auto& figure : figures) {
    const Ink ink = figure.alarm ? Ink::Alarm : Ink::Strong;
    text += pad(figure.label, label_width) + "  " + paint(figure.value, ink, style);
    const auto notes = wrap(figure.note, room);
    if (!notes[0].empty()) {
      text += std::string(value_width - display_width(figure.value) + 2, ' ');
      text += paint(notes[0], figure.alarm ? Ink::Alarm : Ink::Faint, style);
    }
    text += "\n";
    for (std::size_t i = 1; i < notes.size(); ++i) {
      text += std::string(indent, ' ') + paint(notes[i], Ink::Faint, style) + "\n";
    }
  }
  return text;
}

std::string single_table(const ScenarioResult& result, const TableStyle& style) {
  std::string text = paragraph(result.scenario.name, Ink::Strong, style);
  text += paragraph(subtitle(result), Ink::Faint, style) + "\n";
  text += figure_lines(headline_figures(result), style) + "\n";
  const Metrics& metrics = result.measurement.metrics;
  const Grid devices = device_grid(result);
  const Grid shown =
      shorten(devices, kMostDevices, {metrics.limiting_device, fullest_device(metrics).rank});
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
