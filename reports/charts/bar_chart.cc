// Stacked bars in rows of panels with one scale.
// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/bar_chart.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "reports/charts/chart_axes.h"
#include "reports/charts/page_picture.h"
#include "reports/charts/svg_text.h"
#include "reports/words/encode.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

constexpr double kBarPanel = 330, kBarPanelGap = 66, kBarPanelHeight = 190, kBarPanelLeft = 64,
                 kBarLegend = 70;
constexpr double kAbove = 62, kBelow = 56;  // of a panel: its words, its marks
constexpr double kBarRight = 16, kLeastBarPanel = 180;
constexpr std::size_t kInRow = 3, kMostBarsInPanel = 128;
constexpr double kLongestTitle = 50;  // letters of a panel's width
constexpr double kRoomForSums = 1.1;  // above the highest bar
constexpr double kWrittenBar = 30;    // least width of a bar with its sum above

/// The place of a panel's plot in the picture.
struct PanelPlace {
  double left = 0, width = kBarPanel;
  Axis y;
};
struct BarPlace {
  double left = 0, width = 0;
};

std::string pattern_id(const BarChart& chart, std::size_t part) {
  return chart.page_id + "part-" + std::to_string(part);
}

/// Returns the fill of a part: its colour, or its pattern.
std::string fill_of(const BarChart& chart, std::size_t part) {
  const BarPart& look = chart.parts[part];
  if (look.hatch == Hatch::None) return look.colour;
  return "url(#" + pattern_id(chart, part) + ")";
}

std::string patterns(const BarChart& chart) {
  std::string text;
  for (std::size_t part = 0; part < chart.parts.size(); ++part) {
    const BarPart& look = chart.parts[part];
    if (look.hatch == Hatch::None) continue;
    text += pattern_svg(pattern_id(chart, part), {look.colour, look.hatch});
  }
  return text.empty() ? "" : "<defs>\n" + text + "</defs>\n";
}

double stack_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::string shortened(const std::string& words, double panel) {
  const auto longest = static_cast<std::size_t>(kLongestTitle * panel / kBarPanel);
  if (display_width(words) <= longest) return words;
  std::string text;
  for (const char c : words) {
    const bool begins = (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
    if (begins && display_width(text) + 1 >= longest) break;
    text += c;
  }
  return text + "…";
}

/// Returns n where every nth of `bars` is drawn.
std::size_t stride_of(std::size_t bars) {
  std::size_t stride = 1;
  while (bars > stride * kMostBarsInPanel) stride *= 2;
  return stride;
}

/// Returns the words beside the pointer: all digits in a file, a few on a page.
std::string tip_of(const BarChart& chart, const std::string& bar, std::size_t part, double value) {
  const std::string words = chart.bar_label + " " + bar + ", " + chart.parts[part].name;
  if (chart.page_id.empty()) return words + ": " + exact(value);
  return words + ", " + chart.label + ": " + few_digits(value / chart.unit);
}

std::string one_bar(const BarChart& chart, const BarPanel& panel, std::size_t bar,
                    const BarPlace& at, const Axis& y) {
  std::string text;
  double below = 0;
  for (std::size_t part = 0; part < chart.parts.size(); ++part) {
    const double value = panel.values[bar][part];
    if (!(value > 0)) continue;
    const double from = y.at(below / chart.unit), to = y.at((below + value) / chart.unit);
    text += "<rect" + attribute("x", at.left) + attribute("y", to) + attribute("width", at.width) +
            attribute("height", from - to) + " fill=\"" + fill_of(chart, part) + "\"" +
            (chart.style.grey ? " stroke=\"#333333\" stroke-width=\"0.6\">" : ">") +
            tooltip(tip_of(chart, panel.bars[bar], part, value)) + "</rect>\n";
    below += value;
  }
  return text;
}

std::string bars_of(const BarChart& chart, const BarPanel& panel, const PanelPlace& at) {
  const std::size_t stride = stride_of(panel.bars.size());
  const std::size_t count = (panel.bars.size() + stride - 1) / stride;
  const double room = at.width / static_cast<double>(std::max<std::size_t>(count, 1));
  const double width = std::min(room * 0.8, 60.0);
  const auto every = static_cast<std::size_t>(std::ceil(24 / room));
  std::string text, sums, names;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t bar = i * stride;
    const double middle = at.left + (static_cast<double>(i) + 0.5) * room;
    text += one_bar(chart, panel, bar, {middle - width / 2, width}, at.y);
    const double total = stack_of(panel.values[bar]) / chart.unit;
    const bool written = chart.writes_sums && room >= kWrittenBar;
    if (written) sums += text_at(middle, at.y.at(total) - 4, fixed(total, chart.decimals));
    if (i % every == 0) names += text_at(middle, at.y.begin + 17, panel.bars[bar]);
  }
  return text + "<g text-anchor=\"middle\" fill=\"#333333\">\n" + sums + names +
         text_at(at.left + at.width / 2, at.y.begin + 37, chart.bar_label) + "</g>\n";
}

std::string stride_words(const BarChart& chart, const BarPanel& panel) {
  const std::size_t stride = stride_of(panel.bars.size());
  return stride > 1 ? "every " + std::to_string(stride) + "th " + chart.bar_label : "";
}

std::string heading(const BarChart& chart, const BarPanel& panel, const PanelPlace& at,
                    double top) {
  const std::string stride = stride_words(chart, panel);
  const std::string words = panel.note + (stride.empty() ? "" : "; " + stride);
  const std::string title = shortened(panel.title, at.width);
  return text_at(at.left - 44, top + 14, title, " font-weight=\"bold\"") +
         text_at(at.left - 44, top + 30, (panel.fails ? "does not fit; " : "") + words,
                 panel.fails && !chart.style.grey ? " fill=\"#b3261e\"" : " fill=\"#555555\"");
}

std::string draw(const BarChart& chart, const BarPanel& panel, const PanelPlace& at) {
  std::string text =
      marks_up(at.y, at.left, at.left + at.width, chart.label) + bars_of(chart, panel, at);
  text += svg_line(at.left, at.y.begin, at.left + at.width, at.y.begin, "#555555");
  if (panel.limit) {
    const double height = at.y.at(*panel.limit / chart.unit);
    text += "<path d=\"M" + svg_number(at.left) + " " + svg_number(height) + "h" +
            svg_number(at.width) + "\" stroke=\"#000000\" stroke-dasharray=\"6 3\">" +
            tooltip(chart.limit_name + ": " + exact(*panel.limit)) + "</path>\n";
  }
  return text;
}

Range values_of(const BarChart& chart) {
  Range range;
  range.add(0);
  if (chart.most) range.add(*chart.most / chart.unit);
  for (const BarPanel& panel : chart.panels) {
    for (const std::vector<double>& bar : panel.values) range.add(stack_of(bar) / chart.unit);
    if (panel.limit) range.add(*panel.limit / chart.unit);
  }
  if (chart.writes_sums) range.most *= kRoomForSums;
  return range;
}

std::vector<LegendEntry> entries_of(const BarChart& chart) {
  std::vector<LegendEntry> entries;
  for (std::size_t part = 0; part < chart.parts.size(); ++part) {
    entries.push_back({chart.parts[part].name, {fill_of(chart, part), ""}, true});
    entries.back().outlined = chart.style.grey;
  }
  if (!chart.limit_name.empty()) entries.push_back({chart.limit_name, {"#000000", "6 3"}});
  return entries;
}

BarChart in_greys(BarChart chart) {
  for (std::size_t part = 0; part < chart.parts.size(); ++part) {
    const Paint paint = grey_paint(part);
    chart.parts[part].colour = paint.colour;
    chart.parts[part].hatch = paint.hatch;
  }
  return chart;
}

std::size_t panels_in_row(const BarChart& chart) {
  const std::size_t panels = std::max<std::size_t>(chart.panels.size(), 1);
  if (chart.style.width <= 0) return panels == 4 ? 2 : std::min(panels, kInRow);
  const double room = chart.style.width - kBarPanelLeft - kBarRight + kBarPanelGap;
  const double fitting = std::floor(room / (kLeastBarPanel + kBarPanelGap));
  return static_cast<std::size_t>(std::clamp(fitting, 1.0, static_cast<double>(panels)));
}

}  // namespace

std::string bar_chart_svg(const BarChart& asked) {
  const BarChart chart = asked.style.grey ? in_greys(asked) : asked;
  const std::size_t in_row = panels_in_row(chart);
  const std::size_t rows = (chart.panels.size() + in_row - 1) / in_row;
  const auto across = static_cast<double>(in_row);
  const double asked_width = chart.style.width;
  const double panel =
      asked_width > 0
          ? (asked_width - kBarPanelLeft - kBarRight - (across - 1) * kBarPanelGap) / across
          : kBarPanel;
  const double width = asked_width > 0
                           ? asked_width
                           : std::max(kBarPanelLeft + across * (kBarPanel + kBarPanelGap), 760.0);
  const Heading words = heading_of(chart.title, chart.subtitle, chart.style);
  const Legend legend = chart_legend(entries_of(chart), kBarLegend + words.extra, width);
  const double top = kBarLegend + words.extra + legend.height;
  const double row = kAbove + kBarPanelHeight + kBelow;
  const Range range = values_of(chart);
  std::string text = open_chart(words, {width, top + row * static_cast<double>(rows)}) +
                     patterns(chart) + legend.svg;
  for (std::size_t p = 0; p < chart.panels.size(); ++p) {
    const std::size_t rows_above = p / in_row;
    const double above = top + static_cast<double>(rows_above) * row, below = above + kAbove;
    const PanelPlace at{kBarPanelLeft + static_cast<double>(p % in_row) * (panel + kBarPanelGap),
                        panel, axis_over(range, below + kBarPanelHeight, below)};
    text += heading(chart, chart.panels[p], at, above) + draw(chart, chart.panels[p], at);
  }
  return text + "</svg>\n";
}

std::string bar_chart_html(const BarChart& chart) {
  CHECK(!chart.page_id.empty(), "patterns of a page need names");
  constexpr double kTop = 26, kWideBar = 24, kWidest = 1080;
  PagePicture picture{chart.title, chart.subtitle, entries_of(chart)};
  for (const BarPanel& panel : chart.panels) {
    const double width =
        std::clamp(kWideBar * static_cast<double>(panel.bars.size()), kBarPanel, kWidest);
    const Axis y = axis_over(values_of(chart), kTop + kBarPanelHeight, kTop);
    picture.panels.push_back({chart.label + " of each " + chart.bar_label,
                              draw(chart, panel, {kBarPanelLeft, width, y}),
                              kBarPanelLeft + width + kBarRight, kTop + kBarPanelHeight + kBelow});
    const std::string stride = stride_words(chart, panel);
    if (!stride.empty()) picture.notes.push_back(stride);
  }
  if (!picture.panels.empty()) picture.panels[0].svg.insert(0, patterns(chart));
  return picture_html(picture);
}

}  // namespace interlock
