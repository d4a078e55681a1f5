// Curves in panels side by side.
// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/line_chart.h"

#include <algorithm>
#include <cmath>

#include "reports/charts/chart_axes.h"
#include "reports/charts/page_picture.h"
#include "reports/charts/svg_text.h"

namespace interlock {
namespace {

constexpr double kCurvePanel = 380, kCurvePanelGap = 70, kCurvePanelHeight = 260,
                 kCurvePanelLeft = 64, kCurveLegend = 64, kBottom = 52;
constexpr double kBelowLegend = 12, kNote = 18;
constexpr const char* kFails = "#b3261e";  // of a cross

/// The place of a panel in a file or in a page.
struct Place {
  double left = 0, top = 0;
  bool page = false;
};
struct Axes {
  Axis x, y;
};

bool is_there(const ChartPoint& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

std::string path(const ChartCurve& curve, const Look& look, const Axes& axes) {
  std::string d;
  bool under_way = false;
  for (const ChartPoint& point : curve) {
    if (is_there(point)) {
      d += (under_way ? "L" : "M") + svg_number(axes.x.at(point.x)) + " " +
           svg_number(axes.y.at(point.y));
    }
    under_way = is_there(point);
  }
  return "<path fill=\"none\" stroke-width=\"1.6\" stroke-linejoin=\"round\" stroke=\"" +
         look.colour + "\"" + (look.dash.empty() ? "" : " stroke-dasharray=\"" + look.dash + "\"") +
         " d=\"" + d + "\"/>\n";
}

/// Returns the mark of `point` with `tip` beside the pointer.
std::string mark(const ChartPoint& point, Dots dots, const std::string& colour, const Axes& axes,
                 const std::string& tip) {
  const double x = axes.x.at(point.x), y = axes.y.at(point.y);
  if (point.mark == PointMark::Cross) {
    return "<path stroke=\"" + std::string(kFails) + "\" stroke-width=\"2\" d=\"M" +
           svg_number(x - 4) + " " + svg_number(y - 4) + "l8 8m0 -8l-8 8\">" + tooltip(tip) +
           "</path>\n";
  }
  std::string look = " r=\"3\" fill=\"" + colour + "\"";
  if (point.mark == PointMark::Pale) look += " fill-opacity=\"0.4\"";
  if (dots == Dots::OnPages) look = " r=\"6\" fill-opacity=\"0\"";
  return "<circle" + attribute("cx", x) + attribute("cy", y) + look + ">" + tooltip(tip) +
         "</circle>\n";
}

/// Returns name and numbers of `point`: all digits in a file, a few on a page.
std::string tip_of(const ChartPoint& point, const ChartPanel& panel, const std::string& curve,
                   bool page) {
  if (!page && !point.tip.empty()) return point.tip;
  const auto number = page ? few_digits : exact;
  return (page && !point.name.empty() ? point.name : curve) + ": " + panel.x_label + " " +
         number(point.x) + ", " + panel.y_label + " " + number(point.y);
}

std::string dots(const LineChart& chart, const ChartPanel& panel, std::size_t c, const Axes& axes,
                 const Place& at) {
  std::string text;
  for (const ChartPoint& point : panel.curves[c]) {
    if (!is_there(point)) continue;
    const std::string dot = mark(point, panel.dots, curve_look(c).colour, axes,
                                 tip_of(point, panel, chart.names[c], at.page));
    const bool leads = at.page && point.result;
    text += leads ? "<a href=\"#" + section_name(*point.result) + "\">" + dot + "</a>" : dot;
    if (!point.word.empty())
      text += text_at(axes.x.at(point.x) + 6, axes.y.at(point.y) - 5, point.word);
  }
  return text;
}

Axes axes_of(const ChartPanel& panel, const Place& at) {
  Range across, up;
  for (const ChartCurve& curve : panel.curves) {
    for (const ChartPoint& point : curve) {
      if (!is_there(point)) continue;
      across.add(point.x);
      up.add(point.y);
    }
  }
  const double right = at.left + kCurvePanel, bottom = at.top + kCurvePanelHeight;
  return {panel.x_marks.empty() ? axis_over(across, at.left, right)
                                : axis_of(panel.x_marks, at.left, right),
          panel.y_marks.empty() ? axis_over(up, bottom, at.top)
                                : axis_of(panel.y_marks, bottom, at.top)};
}

std::string draw(const LineChart& chart, const ChartPanel& panel, const Place& at) {
  const Axes axes = axes_of(panel, at);
  std::string text = marks_up(axes.y, axes.x.begin, axes.x.end, panel.y_label);
  text += marks_across(axes.x, axes.y.begin, panel.x_label);
  for (const ChartCurve& guide : panel.guides) text += path(guide, {"#999999", "2 2"}, axes);
  for (std::size_t c = 0; c < panel.curves.size(); ++c) {
    const bool joined = c >= chart.unjoined.size() || !chart.unjoined[c];
    const bool dotted = panel.dots == Dots::Drawn || (at.page && panel.dots == Dots::OnPages);
    if (at.page) text += "<g class=\"curve\">";
    if (joined) text += path(panel.curves[c], curve_look(c), axes);
    if (dotted) text += dots(chart, panel, c, axes, at);
    if (at.page) text += "</g>\n";
  }
  return text;
}

std::vector<LegendEntry> entries_of(const LineChart& chart) {
  std::vector<LegendEntry> entries;
  for (std::size_t c = 0; c < chart.names.size(); ++c) {
    entries.push_back(
        {chart.names[c], curve_look(c), c < chart.unjoined.size() && chart.unjoined[c]});
  }
  return entries;
}

}  // namespace

std::string line_chart_svg(const LineChart& chart) {
  const double panels = static_cast<double>(chart.panels.size());
  const double width = std::max(kCurvePanelLeft + panels * (kCurvePanel + kCurvePanelGap), 600.0);
  const Legend legend = chart_legend(entries_of(chart), kCurveLegend, width);
  const double top = kCurveLegend + legend.height + kBelowLegend;
  const double below = top + kCurvePanelHeight + kBottom;
  const double notes = kNote * static_cast<double>(chart.notes.size());
  std::string text = open_chart(chart.title, chart.subtitle, {width, below + notes}) + legend.svg;
  for (std::size_t p = 0; p < chart.panels.size(); ++p) {
    const double left = kCurvePanelLeft + static_cast<double>(p) * (kCurvePanel + kCurvePanelGap);
    text += draw(chart, chart.panels[p], {left, top});
  }
  for (std::size_t n = 0; n < chart.notes.size(); ++n) {
    text += text_at(kCurvePanelLeft, below + kNote * (static_cast<double>(n) + 0.6), chart.notes[n],
                    " fill=\"#555555\"");
  }
  return text + "</svg>\n";
}

std::string line_chart_html(const LineChart& chart) {
  constexpr double kTop = 26, kRight = 38;
  const double width = kCurvePanelLeft + kCurvePanel + kRight;
  PagePicture picture{.title = chart.title, .subtitle = chart.subtitle, .notes = chart.notes};
  if (chart.names.size() > 1) picture.entries = entries_of(chart);
  for (const ChartPanel& panel : chart.panels) {
    picture.panels.push_back({panel.y_label + " against " + panel.x_label,
                              draw(chart, panel, {kCurvePanelLeft, kTop, true}), width,
                              kTop + kCurvePanelHeight + kBottom});
  }
  return picture_html(picture);
}

}  // namespace interlock
