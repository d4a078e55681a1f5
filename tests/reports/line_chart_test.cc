// Curves in a picture: where a point must lie, what is cut, and what is named.
// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/line_chart.h"

#include <doctest/doctest.h>

#include <limits>

namespace interlock::line_chart_test {

namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("points lie where axes from 0 to the largest value put them") {
  // Panels are 380 wide from 64 and 260 high down to 356.
  const std::string svg = line_chart_svg(
      {.title = "t", .names = {"one"}, .panels = {{"step", "loss", {{{0, 8}, {5, 2}, {10, 4}}}}}});
  INFO(svg);
  CHECK(holds(svg, "d=\"M64 96L254 291L444 226\""));
}

TEST_CASE("an axis whose values lie far from 0 begins at a round number below them") {
  const std::string svg =
      line_chart_svg({.names = {"one"}, .panels = {{"", "", {{{0, 100}, {1, 110}}}}}});
  INFO(svg);
  CHECK(holds(svg, ">100</text>"));
  CHECK(holds(svg, ">110</text>"));
  CHECK(!holds(svg, ">50</text>"));
}

TEST_CASE("a value that is no number cuts its curve, and no value at all is an empty picture") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string svg = line_chart_svg(
      {.names = {"one"}, .panels = {{"", "", {{{0, 1}, {1, 0}, {2, nan}, {3, 0}, {4, 1}}}}}});
  INFO(svg);
  CHECK(holds(svg, "M64 96L159 356M349 356L444 96"));
  CHECK(!holds(svg, "nan"));
  const std::string empty = line_chart_svg({.names = {"one"}, .panels = {{"", "", {{}}}}});
  CHECK(holds(empty, "</svg>"));
  CHECK(!holds(empty, "nan"));
  CHECK(!holds(empty, "inf"));
}

TEST_CASE("every curve is named once, and names cannot break the picture") {
  const std::string svg = line_chart_svg({.title = "a < b & c",
                                          .names = {"<first>", "second"},
                                          .panels = {{"x", "y", {{{0, 0}, {1, 1}}, {}}}}});
  CHECK(holds(svg, "a &lt; b &amp; c"));
  CHECK(holds(svg, ">&lt;first&gt;</text>"));
  CHECK(holds(svg, ">second</text>"));
  CHECK(!holds(svg, "<first>"));
}

}  // namespace interlock::line_chart_test
