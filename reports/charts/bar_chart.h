// BarChart: stacked bars, a panel for each scenario, as a still picture.
// SPDX-License-Identifier: Apache-2.0
//
// Example: the parts {"weights", "stash"}, a panel with the bars {"0", "1"} and the values {{2, 3},
// {2, 1}}: bar 0 has 2 of weights below 3 of stash, bar 1 has 2 below 1.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/charts/picture_style.h"
#include "reports/words/palette.h"

namespace interlock {

/// A part of every bar.
struct BarPart {
  std::string name, colour;
  Hatch hatch = Hatch::None;
};

struct BarPanel {
  std::string title, note;
  std::vector<std::string> bars;            // what each stands for: "3"
  std::vector<std::vector<double>> values;  // (bars, parts), in the unit of results
  std::optional<double> limit;              // a line across
  bool fails = false;                       // does not fit in memory, which is written above
};

struct BarChart {
  std::string title, subtitle;
  std::string bar_label;  // "device"
  std::string label;      // with its unit: "peak memory (GiB)"
  double unit = 1;        // of the label, in the unit of results
  int decimals = 1;       // of the sums that are written above bars
  bool writes_sums = true;
  std::optional<double> most;  // the axis goes up to this at least, in the unit of results
  std::string limit_name;
  std::vector<BarPart> parts;  // from below
  std::vector<BarPanel> panels;
  std::string page_id = {};  // on a page: unlike that of its other charts; empty in a file
  PictureStyle style = {};   // of a file
};

/// Returns a file of SVG. Each part of a bar has its value as results print it; sums stand above
/// where there is room. Of more than 128 bars every second, fourth, ... is drawn, which the panel
/// says.
std::string bar_chart_svg(const BarChart& chart);

/// Returns the same panels for a page, without their titles, as wide as their bars need. REQUIRES:
/// chart.page_id is not empty.
std::string bar_chart_html(const BarChart& chart);

}  // namespace interlock
