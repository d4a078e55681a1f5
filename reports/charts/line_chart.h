// LineChart: curves and points over one or several axes, as a still picture.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace interlock {

/// Axes with their units in the label: "time (s)".
struct ChartPanel {
  std::string x_label, y_label;
  /// (x, y) of each curve of the chart, in order of x; empty where it has none.
  std::vector<std::vector<std::pair<double, double>>> curves;
  bool points = false;  // a dot at each point, with its numbers
  /// Instead of a curve's name and numbers beside the pointer, and a word at each dot: by curve and
  /// point; may be empty.
  std::vector<std::vector<std::string>> tips = {}, words = {};
  std::vector<double> marks = {};  // below a logarithmic axis across; empty: it is linear
};

struct LineChart {
  std::string title, subtitle;
  std::vector<std::string> names;       // of the curves, for the legend
  std::vector<ChartPanel> panels;       // side by side
  std::vector<bool> unjoined = {};      // curves whose points no line joins; empty: none
  std::vector<std::string> notes = {};  // lines below
};

/// SVG. Values that are not finite are left out; a curve is cut there. Text stays text, and equal
/// charts give equal bytes. Both axes begin at 0 where a panel's values do not lie far above it.
std::string line_chart_svg(const LineChart& chart);

}  // namespace interlock
