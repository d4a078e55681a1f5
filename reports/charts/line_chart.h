// LineChart: curves and points over one or several axes, as a still picture.
// SPDX-License-Identifier: Apache-2.0
//
// Example: the names {"gpipe", "1f1b"} and a panel with the curves {{{2, 0.5}, {4, 0.4}}, {}}: that
// of gpipe has two points, 1f1b has none here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/charts/picture_style.h"

namespace interlock {

enum class PointMark { Dot, Pale, Cross };

/// A point of a curve, e.g. {8, 0.5}.
struct ChartPoint {
  double x = 0, y = 0;
  std::string name = {};  // beside the pointer on a page; empty: the curve's
  std::string tip = {};   // beside the pointer in a file; empty: the name and both numbers
  std::string word = {};  // written at the point
  PointMark mark = PointMark::Dot;
  std::optional<std::size_t> result = std::nullopt;  // a page leads from the point to its section
};
using ChartCurve = std::vector<ChartPoint>;

enum class Dots { None, OnPages, Drawn };  // OnPages: unseen, with numbers beside the pointer

/// Axes with their units in the label: "time (s)".
struct ChartPanel {
  std::string x_label, y_label;
  std::vector<ChartCurve> curves;  // of the chart's names, in order of x; empty where it has none
  Dots dots = Dots::None;
  std::vector<double> x_marks = {}, y_marks = {};  // of a logarithmic axis; empty: it is linear
  std::vector<ChartCurve> guides = {};             // grey lines to read points by
  bool arrows = false;                             // guides have heads at their ends
};

struct LineChart {
  std::string title, subtitle;
  std::vector<std::string> names;       // of the curves, for the legend
  std::vector<ChartPanel> panels;       // side by side
  std::vector<bool> unjoined = {};      // curves whose points no line joins; empty: none
  std::vector<std::string> notes = {};  // lines below
  PictureStyle style = {};              // of a file
};

/// Returns a file of SVG. Values that are not finite are left out; a curve is cut there. Text stays
/// text, and equal charts give equal bytes. Both axes begin at 0 where a panel's values do not lie
/// far above it. Panels stand below each other where the style's width has no room.
std::string line_chart_svg(const LineChart& chart);

/// Returns the same panels for a page.
std::string line_chart_html(const LineChart& chart);

}  // namespace interlock
