// Curves, axes with round numbers, and a legend that names every curve once.
// SPDX-License-Identifier: Apache-2.0
#include "reports/line_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "reports/encode.h"
#include "reports/scale.h"
#include "reports/svg_text.h"

namespace interlock {
namespace {

// Those of palette.h that can be told from white in a thin line.
constexpr std::array kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                              "#e69f00", "#56b4e9", "#000000", "#999999"};
constexpr std::array kDashes{"", "6 3", "2 2", "8 3 2 3"};
constexpr double kPanel = 380, kGap = 70, kHeight = 260, kLeft = 64, kTop = 96, kBottom = 52;
constexpr int kMostMarks = 6;
constexpr double kFarFromZero = 0.5;  // least over most, from which an axis does not begin at 0

using Curve = std::vector<std::pair<double, double>>;

struct Range {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
  void add(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

bool is_point(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

/// One direction of a panel: what lies where, and round numbers to mark it with.
struct Axis {
  double from = 0, to = 1;    // of the values
  double begin = 0, end = 1;  // in the picture
  double step = 1;
  int decimals = 0;
  double at(double value) const { return begin + (end - begin) * (value - from) / (to - from); }
};

Axis axis_over(Range range, double begin, double end) {
  if (range.least > range.most) range = {0, 1};
  if (range.least >= 0 && range.least < kFarFromZero * range.most) range.least = 0;
  if (range.most <= range.least) range.most = range.least + std::max(1.0, std::abs(range.least));
  const Ticks marks = ticks(range.most - range.least, kMostMarks);
  const double step = marks.at.size() > 1 ? marks.at[1] : range.most - range.least;
  return {.from = std::floor(range.least / step + 1e-9) * step,
          .to = range.most,
          .begin = begin,
          .end = end,
          .step = step,
          .decimals = marks.decimals};
}

std::string line(double x, double y, double to_x, double to_y, const char* colour) {
  return "<path d=\"M" + svg_number(x) + " " + svg_number(y) + "L" + svg_number(to_x) + " " +
         svg_number(to_y) + "\" stroke=\"" + colour + "\"/>\n";
}

std::string axes(const ChartPanel& panel, const Axis& x, const Axis& y) {
  std::string text = "<g text-anchor=\"middle\" fill=\"#333333\">\n";
  for (double mark = x.from; mark <= x.to + 1e-9 * x.step; mark += x.step) {
    text += line(x.at(mark), y.begin, x.at(mark), y.begin + 5, "#555555");
    text += text_at(x.at(mark), y.begin + 19, fixed(mark, x.decimals));
  }
  text += text_at((x.begin + x.end) / 2, y.begin + 40, panel.x_label);
  text += "</g>\n<g text-anchor=\"end\" fill=\"#333333\">\n";
  for (double mark = y.from; mark <= y.to + 1e-9 * y.step; mark += y.step) {
    text += line(x.begin, y.at(mark), x.end, y.at(mark), "#e5e5e5");
    text += text_at(x.begin - 7, y.at(mark) + 4, fixed(mark, y.decimals));
  }
  text += "</g>\n" + line(x.begin, y.begin, x.end, y.begin, "#555555");
  return text + text_at(x.begin - 50, y.end - 12, panel.y_label, " fill=\"#333333\"");
}

std::string path(const Curve& curve, std::size_t number, const Axis& x, const Axis& y) {
  std::string d;
  bool under_way = false;
  for (const auto& point : curve) {
    if (is_point(point)) {
      d += (under_way ? "L" : "M") + svg_number(x.at(point.first)) + " " +
           svg_number(y.at(point.second));
    }
    under_way = is_point(point);
  }
  const std::string dash = kDashes[number / kColours.size() % kDashes.size()];
  return "<path fill=\"none\" stroke-width=\"1.6\" stroke-linejoin=\"round\" stroke=\"" +
         std::string(kColours[number % kColours.size()]) + "\"" +
         (dash.empty() ? "" : " stroke-dasharray=\"" + dash + "\"") + " d=\"" + d + "\"/>\n";
}

std::string draw(const ChartPanel& panel, double left) {
  Range across, up;
  for (const Curve& curve : panel.curves) {
    for (const auto& point : curve) {
      if (!is_point(point)) continue;
      across.add(point.first);
      up.add(point.second);
    }
  }
  const Axis x = axis_over(across, left, left + kPanel);
  const Axis y = axis_over(up, kTop + kHeight, kTop);
  std::string text = axes(panel, x, y);
  for (std::size_t c = 0; c < panel.curves.size(); ++c) text += path(panel.curves[c], c, x, y);
  return text;
}

std::string legend(const LineChart& chart) {
  std::string text;
  double x = kLeft;
  for (std::size_t i = 0; i < chart.names.size(); ++i) {
    text += path({{0, 0}, {1, 0}}, i, {.begin = x, .end = x + 24}, {.begin = 64, .end = 64});
    text += text_at(x + 30, 68, chart.names[i]);
    x += 54 + 6.6 * static_cast<double>(display_width(chart.names[i]));
  }
  return text;
}

}  // namespace

std::string line_chart_svg(const LineChart& chart) {
  const double panels = static_cast<double>(chart.panels.size());
  double legend_width = kLeft;
  for (const std::string& name : chart.names) {
    legend_width += 54 + 6.6 * static_cast<double>(display_width(name));
  }
  const double width = std::max(kLeft + panels * (kPanel + kGap), legend_width);
  const double height = kTop + kHeight + kBottom;
  std::string text = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " +
                     svg_number(width) + " " + svg_number(height) + "\"" +
                     attribute("width", width) + attribute("height", height) +
                     " font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n<title>" +
                     escape_markup(chart.title) +
                     "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" +
                     text_at(20, 28, chart.title, " font-size=\"18\" font-weight=\"bold\"") +
                     text_at(20, 48, chart.subtitle, " fill=\"#555555\"") + legend(chart);
  for (std::size_t p = 0; p < chart.panels.size(); ++p) {
    text += draw(chart.panels[p], kLeft + static_cast<double>(p) * (kPanel + kGap));
  }
  return text + "</svg>\n";
}

}  // namespace interlock
