// Axes with round numbers, and legends that name everything once.
// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/chart_axes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "reports/charts/svg_text.h"
#include "reports/words/encode.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

// Those of palette.h that can be told from white in a thin line.
constexpr std::array kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                              "#e69f00", "#56b4e9", "#000000", "#999999"};
constexpr std::array kDashes{"", "6 3", "2 2", "8 3 2 3"};
constexpr std::array kGreys{"#000000", "#6e6e6e"};
constexpr std::size_t kShapes = 4;
constexpr int kMostAxisMarks = 6;
constexpr double kFarFromZero = 0.5;  // least over most, from which an axis does not begin at 0
constexpr double kMarkRounding = 1e-9;
constexpr double kRow = 20;      // height of a row of the legend
constexpr double kLetter = 6.6;  // width, about
constexpr double kLine = 24, kBox = 14;

}  // namespace

void Range::add(double value) {
  least = std::min(least, value);
  most = std::max(most, value);
}

Axis axis_over(Range range, double begin, double end) {
  if (range.least > range.most) range = {0, 1};
  if (range.least >= 0 && range.least < kFarFromZero * range.most) range.least = 0;
  const double size = std::max(std::abs(range.least), std::abs(range.most));
  // Values that differ by rounding alone are one value, around which an axis needs room.
  if (range.most - range.least <= kMarkRounding * size) {
    range.most = range.least + std::max(1.0, size);
    if (range.least > 0) range.least = 0;
  }
  const Ticks marks = ticks(range.most - range.least, kMostAxisMarks);
  const double step = marks.at.size() > 1 ? marks.at[1] : range.most - range.least;
  return {.from = std::floor(range.least / step + 1e-9) * step,
          .to = range.most,
          .begin = begin,
          .end = end,
          .step = step,
          .decimals = marks.decimals};
}

double Axis::at(double value) const {
  const double share =
      marks.empty() ? (value - from) / (to - from) : std::log(value / from) / std::log(to / from);
  return begin + (end - begin) * share;
}

Axis axis_of(const std::vector<double>& values, double begin, double end) {
  return {.from = values.front(), .to = values.back(), .begin = begin, .end = end, .marks = values};
}

std::vector<double> logarithmic_marks(const Range& range) {
  std::vector<double> marks;
  for (int power = static_cast<int>(std::floor(std::log10(range.least)));; ++power) {
    for (const char* digit : {"1", "2", "5"}) {
      const double mark = std::stod(digit + std::string("e") + std::to_string(power));
      if (mark <= range.least) marks.clear();
      marks.push_back(mark);
      if (mark >= range.most && marks.size() > 1) return marks;
    }
  }
}

std::string svg_line(double x, double y, double to_x, double to_y, const std::string& colour) {
  return "<path d=\"M" + svg_number(x) + " " + svg_number(y) + "L" + svg_number(to_x) + " " +
         svg_number(to_y) + "\" stroke=\"" + colour + "\"/>\n";
}

std::string marks_across(const Axis& x, double y, const std::string& label) {
  std::string text = "<g text-anchor=\"middle\" fill=\"#333333\">\n";
  const auto add = [&](double mark, const std::string& words) {
    text += svg_line(x.at(mark), y, x.at(mark), y + 5, "#555555");
    text += text_at(x.at(mark), y + 19, words);
  };
  for (const double mark : x.marks) add(mark, exact(mark));
  for (double mark = x.from; x.marks.empty() && mark <= x.to + 1e-9 * x.step; mark += x.step) {
    add(mark, fixed(mark, x.decimals));
  }
  text += text_at((x.begin + x.end) / 2, y + 40, label) + "</g>\n";
  return text + svg_line(x.begin, y, x.end, y, "#555555");
}

std::string marks_up(const Axis& y, double left, double right, const std::string& label) {
  std::string text = "<g text-anchor=\"end\" fill=\"#333333\">\n";
  const auto add = [&](double mark, const std::string& words) {
    text += svg_line(left, y.at(mark), right, y.at(mark), "#e5e5e5");
    text += text_at(left - 7, y.at(mark) + 4, words);
  };
  for (const double mark : y.marks) add(mark, exact(mark));
  for (double mark = y.from; y.marks.empty() && mark <= y.to + 1e-9 * y.step; mark += y.step) {
    add(mark, fixed(mark, y.decimals));
  }
  return text + "</g>\n" + text_at(left - 50, y.end - 12, label, " fill=\"#333333\"");
}

Look curve_look(std::size_t number, bool grey) {
  if (grey) {
    return {kGreys[number % kGreys.size()], kDashes[number % kDashes.size()],
            static_cast<int>(number % kShapes), number / kShapes % 2 == 1, "#000000"};
  }
  return {kColours[number % kColours.size()], kDashes[number / kColours.size() % kDashes.size()]};
}

std::string point_sign(const Look& look, double x, double y) {
  const std::string at = svg_number(x) + " ";
  const std::string paint = look.hollow ? " fill=\"#ffffff\" stroke=\"" + look.colour + "\""
                                        : " fill=\"" + look.colour + "\"";
  switch (look.shape) {
    case 1:
      return "<path d=\"M" + at + svg_number(y) + "m-3 -3h6v6h-6z\"" + paint;
    case 2:
      return "<path d=\"M" + at + svg_number(y) + "m0 -4l4 7h-8z\"" + paint;
    case 3:
      return "<path d=\"M" + at + svg_number(y) + "m0 -4.5l4 4.5l-4 4.5l-4 -4.5z\"" + paint;
    default:
      return "<circle" + attribute("cx", x) + attribute("cy", y) + " r=\"3\"" + paint;
  }
}

std::string legend_sign(const LegendEntry& entry, double x, double y) {
  if (entry.area && entry.dotted) return point_sign(entry.look, x + kBox / 2, y) + "/>\n";
  if (entry.area) {
    return "<rect" + attribute("x", x) + attribute("y", y - kBox / 2) + attribute("width", kBox) +
           attribute("height", kBox) + " fill=\"" + entry.look.colour +
           (entry.outlined ? "\" stroke=\"#333333\" stroke-width=\"0.6\"/>\n" : "\"/>\n");
  }
  const std::string line =
      "<path fill=\"none\" stroke-width=\"1.6\" stroke=\"" + entry.look.colour + "\"" +
      (entry.look.dash.empty() ? "" : " stroke-dasharray=\"" + entry.look.dash + "\"") + " d=\"M" +
      svg_number(x) + " " + svg_number(y) + "h" + svg_number(kLine) + "\"/>\n";
  return entry.dotted ? line + point_sign(entry.look, x + kLine / 2, y) + "/>\n" : line;
}

Legend chart_legend(const std::vector<LegendEntry>& entries, double y, double width) {
  constexpr double kLeft = 64;
  Legend legend{"", kRow};
  double x = kLeft;
  for (const LegendEntry& entry : entries) {
    const double sign = entry.area ? kBox : kLine;
    const double wide = sign + 30 + kLetter * static_cast<double>(display_width(entry.name));
    if (x > kLeft && x + wide > width) {
      x = kLeft;
      legend.height += kRow;
    }
    const double middle = y + legend.height - kRow;
    legend.svg += legend_sign(entry, x, middle) + text_at(x + sign + 6, middle + 4, entry.name);
    x += wide;
  }
  return legend;
}

std::string open_chart(const Heading& heading, const ChartSize& size) {
  std::string title;
  for (const std::string& line : heading.title) title += (title.empty() ? "" : " ") + line;
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + svg_number(size.width) + " " +
         svg_number(size.height) + "\"" + attribute("width", size.width) +
         attribute("height", size.height) +
         " font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n" + tooltip(title) +
         "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" + heading_svg(heading);
}

std::string tooltip(const std::string& words) {
  return "<title>" + escape_markup(words) + "</title>\n";
}

std::string exact(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

}  // namespace interlock
