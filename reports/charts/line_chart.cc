// Curves in panels side by side.
// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/line_chart.h"

#include <algorithm>
#include <cmath>

#include "reports/charts/chart_axes.h"
#include "reports/charts/page_picture.h"
#include "reports/charts/svg_text.h"
#include "reports/words/encode.h"

namespace interlock {
namespace {

constexpr double kCurvePanel = 380, kCurvePanelGap = 70, kCurvePanelHeight = 260,
                 kCurvePanelLeft = 64, kCurveLegend = 64, kBottom = 52, kLeastPanel = 180,
                 kCurveRight = 24, kCurveWords = 45;
constexpr double kBetweenPanels = 20;  // room of words, before the numbers of the next panel
constexpr double kBelowLegend = 12, kNote = 18, kWordRoom = 14;
constexpr double kBetweenRows = 18;  // of panels, for what their axes are of

/// The place of a panel in a file or in a page.
struct Place {
  double left = 0, top = 0;
  bool page = false;
  double width = kCurvePanel, height = kCurvePanelHeight;
  double beside = kCurveRight;  // room right of it
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
std::string mark(const ChartPoint& point, Dots dots, const Look& curve, const Axes& axes,
                 const std::string& tip) {
  const double x = axes.x.at(point.x), y = axes.y.at(point.y);
  if (point.mark == PointMark::Cross) {
    return "<path stroke=\"" + curve.fails + "\" stroke-width=\"2\" d=\"M" + svg_number(x - 4) +
           " " + svg_number(y - 4) + "l8 8m0 -8l-8 8\">" + tooltip(tip) + "</path>\n";
  }
  if (dots == Dots::OnPages) {
    return "<circle" + attribute("cx", x) + attribute("cy", y) + " r=\"6\" fill-opacity=\"0\">" +
           tooltip(tip) + "</circle>\n";
  }
  const std::string sign = point_sign(curve, x, y);
  return sign + (point.mark == PointMark::Pale ? " fill-opacity=\"0.4\"" : "") + ">" +
         tooltip(tip) + (sign.starts_with("<circle") ? "</circle>\n" : "</path>\n");
}

/// Returns the head of an arrow along the last part of `guide`, short of the dot there; none if the
/// part is hardly longer.
std::string arrow_head(const ChartCurve& guide, const Axes& axes) {
  constexpr double kDot = 4, kLong = 7, kWide = 3;
  if (guide.size() < 2) return "";
  const ChartPoint &from = guide[guide.size() - 2], &to = guide.back();
  const double x = axes.x.at(to.x), y = axes.y.at(to.y);
  const double across = x - axes.x.at(from.x), down = y - axes.y.at(from.y);
  const double length = std::hypot(across, down);
  if (!(length > kDot + kLong)) return "";
  const auto at = [&](double back, double aside) {
    return svg_number(x - (across * back + down * aside) / length) + " " +
           svg_number(y - (down * back - across * aside) / length);
  };
  return "<path fill=\"#999999\" d=\"M" + at(kDot, 0) + "L" + at(kDot + kLong, kWide) + "L" +
         at(kDot + kLong, -kWide) + "Z\"/>\n";
}

/// Returns name and numbers of `point`: all digits in a file, a few on a page.
std::string tip_of(const ChartPoint& point, const ChartPanel& panel, const std::string& curve,
                   bool page) {
  if (!page && !point.tip.empty()) return point.tip;
  const auto number = page ? few_digits : exact;
  return (page && !point.name.empty() ? point.name : curve) + ": " + panel.x_label + " " +
         number(point.x) + ", " + panel.y_label + " " + number(point.y);
}

/// Returns where the words end that marks_up puts above the axis, about.
double label_end(const Axes& axes, const ChartPanel& panel) {
  constexpr double kLetter = 6.6;
  return axes.x.begin - 50 + kLetter * static_cast<double>(display_width(panel.y_label));
}

/// A rectangle of a picture.
struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
  bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

/// Finds places for the words of a panel's points, beside them and upon no other word.
class Words {
 public:
  Words(const Axes& axes, const ChartPanel& panel, double beside)
      : axes_(axes),
        right_(axes.x.end + beside),
        taken_({{0, axes.y.end - 2 * kLine, label_end(axes, panel), axes.y.end - 1}}) {}

  /// Returns the word at its point: right of it and above, or where there is room, joined to it
  /// from further away.
  std::string place(const ChartPoint& point) {
    const double x = axes_.x.at(point.x), y = axes_.y.at(point.y);
    const double wide = kLetter * static_cast<double>(display_width(point.word));
    for (double away = 0; away < kFurthest; away += kLine / 2) {
      for (const double down : {-5 - away, kWordRoom + away}) {
        for (const double left : {x + 6, x - 6 - wide}) {
          const Box box = {left, y + down - kLine + 2, left + wide, y + down + 2};
          if (!is_free(box)) continue;
          taken_.push_back(box);
          const double end = y + down - (down < 0 ? 0 : kLine - 4);
          const double side = left > x ? left : left + wide;
          const std::string line = away > kLine ? svg_line(x, y, side, end, "#bbbbbb") : "";
          return line + text_at(left, y + down, point.word);
        }
      }
    }
    return text_at(std::min(x + 6, right_ - wide), y - 5, point.word);
  }

 private:
  static constexpr double kLetter = 6.6, kLine = 13, kFurthest = 120;

  bool is_free(const Box& box) const {
    const bool inside = box.left >= axes_.x.begin && box.right <= right_ &&
                        box.top >= axes_.y.end - 2 * kLine && box.bottom <= axes_.y.begin + 1;
    return inside && std::none_of(taken_.begin(), taken_.end(),
                                  [&](const Box& other) { return box.meets(other); });
  }

  const Axes& axes_;
  double right_;  // where words must end
  std::vector<Box> taken_;
};

std::string dots(const LineChart& chart, const ChartPanel& panel, std::size_t c, const Axes& axes,
                 const Place& at, Words& words) {
  std::string text;
  for (const ChartPoint& point : panel.curves[c]) {
    if (!is_there(point)) continue;
    const std::string dot = mark(point, panel.dots, curve_look(c, chart.style.grey), axes,
                                 tip_of(point, panel, chart.names[c], at.page));
    const bool leads = at.page && point.result;
    text += leads ? "<a href=\"#" + section_name(*point.result) + "\">" + dot + "</a>" : dot;
    if (!point.word.empty()) text += words.place(point);
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
  const double right = at.left + at.width, bottom = at.top + at.height;
  return {panel.x_marks.empty() ? axis_over(across, at.left, right)
                                : axis_of(panel.x_marks, at.left, right),
          panel.y_marks.empty() ? axis_over(up, bottom, at.top)
                                : axis_of(panel.y_marks, bottom, at.top)};
}

std::string draw(const LineChart& chart, const ChartPanel& panel, const Place& at) {
  const Axes axes = axes_of(panel, at);
  std::string text = marks_up(axes.y, axes.x.begin, axes.x.end, panel.y_label);
  text += marks_across(axes.x, axes.y.begin, panel.x_label);
  for (const ChartCurve& guide : panel.guides) {
    text += path(guide, {"#999999", "2 2"}, axes);
    if (panel.arrows) text += arrow_head(guide, axes);
  }
  Words words(axes, panel, at.beside);
  for (std::size_t c = 0; c < panel.curves.size(); ++c) {
    const bool joined = c >= chart.unjoined.size() || !chart.unjoined[c];
    const bool dotted = panel.dots == Dots::Drawn || (at.page && panel.dots == Dots::OnPages);
    if (at.page) text += "<g class=\"curve\">";
    if (joined) text += path(panel.curves[c], curve_look(c, chart.style.grey), axes);
    if (dotted) text += dots(chart, panel, c, axes, at, words);
    if (at.page) text += "</g>\n";
  }
  return text;
}

std::vector<LegendEntry> entries_of(const LineChart& chart) {
  std::vector<LegendEntry> entries;
  const bool dotted =
      chart.style.grey && !chart.panels.empty() && chart.panels.front().dots == Dots::Drawn;
  for (std::size_t c = 0; c < chart.names.size(); ++c) {
    entries.push_back({chart.names[c], curve_look(c, chart.style.grey),
                       c < chart.unjoined.size() && chart.unjoined[c], dotted});
  }
  return entries;
}

/// How panels stand in a file.
struct PanelRows {
  std::size_t in_row = 1, count = 1;
  double width = 0;  // of the picture
  double panel_width = kCurvePanel, panel_height = kCurvePanelHeight;
  double beside = kCurveWords;  // room right of the last of a row, for words
};

PanelRows rows_of(const LineChart& chart) {
  const std::size_t panels = std::max<std::size_t>(chart.panels.size(), 1);
  const auto all = static_cast<double>(panels);
  PanelRows rows{panels, 1,
                 std::max(kCurvePanelLeft + all * (kCurvePanel + kCurvePanelGap), 600.0)};
  if (chart.style.width <= 0) return rows;
  rows.width = chart.style.width;
  const double room = rows.width - kCurvePanelLeft - kCurveRight;
  const double fitting = std::floor((room + kCurvePanelGap) / (kLeastPanel + kCurvePanelGap));
  rows.in_row = static_cast<std::size_t>(std::clamp(fitting, 1.0, all));
  rows.count = (panels + rows.in_row - 1) / rows.in_row;
  const auto count = static_cast<double>(rows.in_row);
  rows.panel_width = (room - (count - 1) * kCurvePanelGap) / count;
  rows.panel_height = std::min(kCurvePanelHeight, rows.panel_width * 0.8);
  rows.beside = kCurveRight;
  return rows;
}

}  // namespace

std::string line_chart_svg(const LineChart& chart) {
  const PanelRows rows = rows_of(chart);
  const Heading heading = heading_of(chart.title, chart.subtitle, chart.style);
  const double legend_top = kCurveLegend + heading.extra;
  const Legend legend = chart_legend(entries_of(chart), legend_top, rows.width);
  const double top = legend_top + legend.height + kBelowLegend;
  const double row = rows.panel_height + kBottom + kBetweenRows;
  const double below = top + row * static_cast<double>(rows.count) - kBetweenRows;
  std::vector<std::string> notes;
  for (const std::string& note : chart.notes) {
    const double room = chart.style.width > 0 ? rows.width - kCurvePanelLeft - kCurveRight : 0;
    for (const std::string& line : in_lines(note, room, 12)) notes.push_back(line);
  }
  const double height = below + kNote * static_cast<double>(notes.size());
  std::string text = open_chart(heading, {rows.width, height}) + legend.svg;
  for (std::size_t p = 0; p < chart.panels.size(); ++p) {
    const auto place = static_cast<double>(p % rows.in_row);
    const std::size_t rows_above = p / rows.in_row;
    const bool last = p % rows.in_row + 1 == rows.in_row || p + 1 == chart.panels.size();
    text += draw(chart, chart.panels[p],
                 {kCurvePanelLeft + place * (rows.panel_width + kCurvePanelGap),
                  top + row * static_cast<double>(rows_above), false, rows.panel_width,
                  rows.panel_height, last ? rows.beside : kBetweenPanels});
  }
  for (std::size_t n = 0; n < notes.size(); ++n) {
    text += text_at(kCurvePanelLeft, below + kNote * (static_cast<double>(n) + 0.6), notes[n],
                    " fill=\"#555555\"");
  }
  return text + "</svg>\n";
}

std::string line_chart_html(const LineChart& chart) {
  constexpr double kTop = 26, kRight = 38;
  const double width = kCurvePanelLeft + kCurvePanel + kRight;
  PagePicture picture{.title = chart.title, .subtitle = chart.subtitle, .notes = chart.notes};
  if (chart.names.size() > 1) picture.entries = entries_of(chart);
  const Place at = {.left = kCurvePanelLeft, .top = kTop, .page = true, .beside = kRight};
  for (const ChartPanel& panel : chart.panels) {
    picture.panels.push_back({panel.y_label + " against " + panel.x_label, draw(chart, panel, at),
                              width, kTop + kCurvePanelHeight + kBottom});
  }
  return picture_html(picture);
}

}  // namespace interlock
