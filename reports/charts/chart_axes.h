// ChartAxes: frames, axes and legends, the same in all charts.
// SPDX-License-Identifier: Apache-2.0
//
// Example: the axis over values from 2 to 7.3 in a picture from 100 to 300 begins at 0, has a mark
// at every 2, and puts 5 at 237.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "reports/charts/picture_style.h"

namespace interlock {

/// The values that an axis must hold.
struct Range {
  double least = kInfinity;
  double most = -kInfinity;
  void add(double value);
};

/// One direction of a panel: what lies where, and round numbers to mark it with.
struct Axis {
  double from = 0, to = 1;    // of the values
  double begin = 0, end = 1;  // in the picture
  double step = 1;
  int decimals = 0;
  std::vector<double> marks = {};  // of a logarithmic axis; empty: it is linear
  double at(double value) const;
};

/// Begins at 0 where the values do not lie far above it.
Axis axis_over(Range range, double begin, double end);
/// Returns a logarithmic axis with a mark at each of `values`. REQUIRES: they ascend, from above 0.
Axis axis_of(const std::vector<double>& values, double begin, double end);
/// Returns such marks that hold `range`: of 0.3 to 7, 0.2, 0.5, 1, 2, 5 and 10. REQUIRES:
/// range.least > 0.
std::vector<double> logarithmic_marks(const Range& range);
/// Marks of `x` below its line at height `y`, and what they count.
std::string marks_across(const Axis& x, double y, const std::string& label);
/// Marks of `y` at the left of a panel that goes from `left` to `right`, lines of its grid, and
/// what they count.
std::string marks_up(const Axis& y, double left, double right, const std::string& label);

std::string svg_line(double x, double y, double to_x, double to_y, const std::string& colour);

/// How a curve, or a part of a bar, looks.
struct Look {
  std::string colour, dash;       // dash: of lines, may be empty
  int shape = 0;                  // of its points: a disc, a square, a triangle or a diamond
  bool hollow = false;            // its points
  std::string fails = "#b3261e";  // the crosses of what does not fit
};
/// Returns the look of curve `number` of a chart: the first eight differ in colour, further ones
/// also in dashes; where it is `grey`, in dashes and in their points.
Look curve_look(std::size_t number, bool grey = false);
/// Returns the element, without its end, of a point of such a curve at (x, y).
std::string point_sign(const Look& look, double x, double y);

struct LegendEntry {
  std::string name;
  Look look;
  bool area = false;      // a box; else a line
  bool dotted = false;    // the line has points
  bool outlined = false;  // the box has a dark border
};
/// Returns the line or the box of an entry, from `x` rightwards at height `y`.
std::string legend_sign(const LegendEntry& entry, double x, double y);
/// In rows of at most `width`, the first at height `y`.
struct Legend {
  std::string svg;
  double height = 0;
};
Legend chart_legend(const std::vector<LegendEntry>& entries, double y, double width);

/// The start of a picture: element and heading, on white.
struct ChartSize {
  double width = 0, height = 0;
};
std::string open_chart(const Heading& heading, const ChartSize& size);

/// Returns a `title` element, which viewers show beside the pointer.
std::string tooltip(const std::string& words);
/// Returns `value` in the fewest digits that give the same number back, as the result JSON has it.
std::string exact(double value);

}  // namespace interlock
