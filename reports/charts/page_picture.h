// PagePicture: what charts put into a page: legend and notes as markup, an SVG for each panel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reports/charts/chart_axes.h"

namespace interlock {

/// Returns the id of the section of result `index` of a page: "scenario-3".
std::string section_name(std::size_t index);

struct PagePanel {
  std::string name;  // "step time (ms)"
  std::string svg;   // what lies in it
  double width = 0, height = 0;
};

/// Example: {"Loss", "nats", {{"fast", curve_look(0)}}, {{"loss", "<path .../>", 470, 338}}, {}}.
struct PagePicture {
  std::string title, subtitle;
  std::vector<LegendEntry> entries;
  std::vector<PagePanel> panels;
  std::vector<std::string> notes;
};

/// Returns a `figure` element. Its colours are those of files; the style of the page replaces greys
/// by its own, light or dark. Script may hide the nth element of class "curve" of every panel by
/// the nth entry of the legend.
std::string picture_html(const PagePicture& picture);

/// Returns `value` in at most four digits, for people.
std::string few_digits(double value);

}  // namespace interlock
