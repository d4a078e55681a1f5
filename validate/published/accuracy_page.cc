// Accuracy as a page: predicted against measured values, tables, sources.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "reports/charts/chart_axes.h"
#include "reports/charts/line_chart.h"
#include "reports/page/page_frame.h"
#include "reports/words/scale.h"
#include "validate/published/accuracy_report.h"

namespace interlock {
namespace {

/// Returns a line where predictions are `factor` times what was measured, inside marks from `least`
/// to `most`.
ChartCurve guide(double factor, double least, double most) {
  const double from = std::max(least, least / factor), to = std::min(most, most / factor);
  return {{from, from * factor}, {to, to * factor}};
}

ChartPoint point_of(const Accuracy& accuracy, const JudgedValue& value) {
  const MeasurementFile& file = accuracy.files[value.file];
  const MeasuredTable& table = file.tables[value.table];
  const MeasuredRow& row = table.rows[value.row];
  const std::string fitted = fitted_on(row, value.what);
  ChartPoint point{.x = value.measured, .y = *value.predicted};
  point.name = file.name + ": " + row.id + ", " + table.name + ", error " +
               signed_percent(value.error()) + " %";
  if (!fitted.empty()) point.name += ", fitted: " + fitted;
  if (!row.remark.empty()) point.name += ", " + row.remark;
  if (!fitted.empty()) point.mark = PointMark::Pale;
  return point;
}

/// Predicted against measured values of one quantity, a colour for each source.
LineChart chart_of(const Accuracy& accuracy, Measurand what) {
  LineChart chart{
      .title = "Predicted against measured",
      .subtitle = "Lines: equal, and off by 10 and 50 %. Pale: fitted. Axes are logarithmic"};
  const std::string& quantity = measurand_names()[static_cast<int>(what)];
  ChartPanel panel{.x_label = "measured " + quantity,
                   .y_label = "predicted " + quantity,
                   .curves = {},
                   .dots = Dots::Drawn};
  Range range;
  for (std::size_t file = 0; file < accuracy.files.size(); ++file) {
    ChartCurve curve;
    for (const JudgedValue& value : accuracy.values) {
      if (value.file != file || value.what != what || !value.predicted) continue;
      if (!(value.measured > 0 && *value.predicted > 0)) continue;
      curve.push_back(point_of(accuracy, value));
      range.add(value.measured);
      range.add(*value.predicted);
    }
    if (curve.empty()) continue;
    chart.names.push_back(accuracy.files[file].name);
    chart.unjoined.push_back(true);
    panel.curves.push_back(std::move(curve));
  }
  if (chart.names.empty()) return chart;
  panel.x_marks = panel.y_marks = logarithmic_marks(range);
  for (const double factor : {1.0, 1.1, 1 / 1.1, 1.5, 1 / 1.5}) {
    panel.guides.push_back(guide(factor, panel.x_marks.front(), panel.x_marks.back()));
  }
  chart.panels = {std::move(panel)};
  return chart;
}

/// Returns a chart for each quantity that something is predicted of.
std::string charts_html(const Accuracy& accuracy) {
  std::string html;
  for (std::size_t what = 0; what < measurand_names().size(); ++what) {
    const LineChart chart = chart_of(accuracy, static_cast<Measurand>(what));
    if (chart.names.empty()) continue;
    html += "<div data-name=\"" + measurand_names()[what] + "\">\n" + line_chart_html(chart) +
            "</div>\n";
  }
  return "<div class=\"choices\" data-words=\"Quantity\">\n" + html + "</div>\n";
}

/// Returns a paragraph for each line.
std::string totals_html(const Accuracy& accuracy) {
  const std::string text = accuracy_totals(accuracy);
  std::string html;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    html += tagged("p", "class=\"note\"", text.substr(begin, end - begin));
    begin = end + 1;
  }
  return html;
}

}  // namespace

std::string accuracy_html(const Accuracy& accuracy) {
  const std::string title = "Predictions against published measurements";
  std::string sources;
  for (const MeasurementFile& file : accuracy.files) {
    std::string words = file.title + ". " + file.paper;
    for (const std::string& part : {file.place, file.address, file.licence}) {
      if (!part.empty()) words += ", " + part;
    }
    for (const std::string& note : file.notes) words += ". " + note;
    sources += tagged("h3", "", file.name) + tagged("p", "class=\"note\"", words);
  }
  const Grid refused = refused_grid(accuracy);
  const std::string content =
      tagged("h1", "", title) + totals_html(accuracy) + charts_html(accuracy) +
      tagged("h2", "", "Figures") + table_html(accuracy_grid(accuracy), "accuracy") +
      tagged("p", "class=\"note\"", accuracy_note()) + tagged("h2", "", "All values") +
      table_html(value_grid(accuracy), "accuracy") +
      (refused.rows.empty() ? "" : tagged("h2", "", "Refused") + table_html(refused, "accuracy")) +
      tagged("h2", "", "Sources") + sources;
  return html_page(title, content);
}

}  // namespace interlock
