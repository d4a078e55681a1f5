// Curves in panels side by side.
// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/line_chart.h"

#include <algorithm>
#include <cmath>

#include "reports/charts/chart_axes.h"
#include "reports/charts/svg_text.h"

namespace interlock {
namespace {

constexpr double kCurvePanel = 380, kCurvePanelGap = 70, kCurvePanelHeight = 260,
                 kCurvePanelLeft = 64, kCurveLegend = 64, kBottom = 52;
constexpr double kBelowLegend = 12, kNote = 18;

using Curve = std::vector<std::pair<double, double>>;

bool is_point(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

std::string path(const Curve& curve, const Look& look, const Axis& x, const Axis& y) {
  std::string d;
  bool under_way = false;
  for (const auto& point : curve) {
    if (is_point(point)) {
      d += (under_way ? "L" : "M") + svg_number(x.at(point.first)) + " " +
           svg_number(y.at(point.second));
    }
    under_way = is_point(point);
  }
  return "<path fill=\"none\" stroke-width=\"1.6\" stroke-linejoin=\"round\" stroke=\"" +
         look.colour + "\"" + (look.dash.empty() ? "" : " stroke-dasharray=\"" + look.dash + "\"") +
         " d=\"" + d + "\"/>\n";
}

/// The text of point `p` of curve `c`, if there is one.
std::string text_of(const std::vector<std::vector<std::string>>& texts, std::size_t c,
                    std::size_t p) {
  return c < texts.size() && p < texts[c].size() ? texts[c][p] : "";
}

std::string dots(const LineChart& chart, const ChartPanel& panel, std::size_t c, const Axis& x,
                 const Axis& y) {
  std::string text;
  for (std::size_t p = 0; p < panel.curves[c].size(); ++p) {
    const auto& point = panel.curves[c][p];
    if (!is_point(point)) continue;
    std::string tip = text_of(panel.tips, c, p);
    if (tip.empty()) {
      tip = chart.names[c] + ": " + panel.x_label + " " + exact(point.first) + ", " +
            panel.y_label + " " + exact(point.second);
    }
    text += "<circle" + attribute("cx", x.at(point.first)) + attribute("cy", y.at(point.second)) +
            " r=\"3\" fill=\"" + curve_look(c).colour + "\">" + tooltip(tip) + "</circle>\n";
    const std::string word = text_of(panel.words, c, p);
    if (!word.empty()) text += text_at(x.at(point.first) + 6, y.at(point.second) - 5, word);
  }
  return text;
}

std::string draw(const LineChart& chart, const ChartPanel& panel, double left, double top) {
  Range across, up;
  for (const Curve& curve : panel.curves) {
    for (const auto& point : curve) {
      if (!is_point(point)) continue;
      across.add(point.first);
      up.add(point.second);
    }
  }
  const Axis x = panel.marks.empty() ? axis_over(across, left, left + kCurvePanel)
                                     : axis_of(panel.marks, left, left + kCurvePanel);
  const Axis y = axis_over(up, top + kCurvePanelHeight, top);
  std::string text = marks_up(y, x.begin, x.end, panel.y_label);
  text += marks_across(x, y.begin, panel.x_label);
  for (std::size_t c = 0; c < panel.curves.size(); ++c) {
    const bool joined = c >= chart.unjoined.size() || !chart.unjoined[c];
    if (joined) text += path(panel.curves[c], curve_look(c), x, y);
    if (panel.points) text += dots(chart, panel, c, x, y);
  }
  return text;
}

}  // namespace

std::string line_chart_svg(const LineChart& chart) {
  std::vector<LegendEntry> entries;
  for (std::size_t c = 0; c < chart.names.size(); ++c) {
    entries.push_back(
        {chart.names[c], curve_look(c), c < chart.unjoined.size() && chart.unjoined[c]});
  }
  const double panels = static_cast<double>(chart.panels.size());
  const double width = std::max(kCurvePanelLeft + panels * (kCurvePanel + kCurvePanelGap), 600.0);
  const Legend legend = chart_legend(entries, kCurveLegend, width);
  const double top = kCurveLegend + legend.height + kBelowLegend;
  const double below = top + kCurvePanelHeight + kBottom;
  const double notes = kNote * static_cast<double>(chart.notes.size());
  std::string text = open_chart(chart.title, chart.subtitle, {width, below + notes}) + legend.svg;
  for (std::size_t p = 0; p < chart.panels.size(); ++p) {
    text += draw(chart, chart.panels[p],
                 kCurvePanelLeft + static_cast<double>(p) * (kCurvePanel + kCurvePanelGap), top);
  }
  for (std::size_t n = 0; n < chart.notes.size(); ++n) {
    text += text_at(kCurvePanelLeft, below + kNote * (static_cast<double>(n) + 0.6), chart.notes[n],
                    " fill=\"#555555\"");
  }
  return text + "</svg>\n";
}

}  // namespace interlock
