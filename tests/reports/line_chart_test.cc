// Charts of curves and bars: where a point must lie, what is cut, and what is named.
// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/line_chart.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <regex>

#include "reports/charts/bar_chart.h"
#include "reports/charts/chart_axes.h"
#include "reports/charts/paper_figures.h"

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

TEST_CASE("a page has the panels of a file, in elements that scale") {
  // 380 wide from 64 and 260 high, as in a file, but from 26 downwards.
  const LineChart chart{.title = "t", .panels = {{"step", "loss", {{{0, 8}, {5, 2}, {10, 4}}}}}};
  const std::string html = line_chart_html({.title = chart.title,
                                            .names = {"one", "<two>"},
                                            .panels = {chart.panels[0], chart.panels[0]}});
  INFO(html);
  const std::size_t first = html.find("d=\"M64 26L254 221L444 156\"");
  REQUIRE(first != html.npos);
  CHECK(html.find("d=\"M64 26L254 221L444 156\"", first + 1) != html.npos);
  CHECK(holds(html, "<svg viewBox=\"0 0 482 338\""));
  CHECK(holds(html, "aria-label=\"loss against step\""));
  CHECK(holds(html, "</svg>&lt;two&gt;</li>"));
  CHECK(!holds(html, "xmlns"));
}

TEST_CASE("points of a page are told in a few digits, and lead to the section of their result") {
  ChartPanel panel{
      "x (s)",
      "y",
      {{{.x = 1.0 / 3, .y = 2, .tip = "exact", .result = 0}, {.x = 1, .y = 3, .name = "best"}}}};
  panel.dots = Dots::Drawn;
  const LineChart chart{.names = {"one"}, .panels = {panel}};
  const std::string html = line_chart_html(chart);
  INFO(html);
  CHECK(holds(html, "<title>one: x (s) 0.3333, y 2</title>"));
  CHECK(holds(html, "<title>best: x (s) 1, y 3</title>"));
  CHECK(holds(html, "<a href=\"#scenario-0\">"));
  CHECK(html.find("href") == html.rfind("href"));
  const std::string svg = line_chart_svg(chart);
  CHECK(holds(svg, "<title>exact</title>"));
  CHECK(holds(svg, "<title>one: x (s) 1, y 3</title>"));
  CHECK(!holds(svg, "href"));
}

TEST_CASE("logarithmic axes go both ways, and a cross stands in its own place") {
  // log(10 / 1) / log(100 / 1) is half of 380 across and of 260 up.
  ChartPanel panel{"x", "y", {{{.x = 10, .y = 10, .mark = PointMark::Cross}}}};
  panel.dots = Dots::Drawn;
  panel.x_marks = panel.y_marks = {1, 10, 100};
  const std::string svg = line_chart_svg({.names = {"one"}, .panels = {panel}});
  INFO(svg);
  CHECK(holds(svg, "d=\"M250 222l8 8m0 -8l-8 8\""));
}

TEST_CASE("a guide with a head points to its end, short of the dot there") {
  ChartPanel panel{"x", "y", {{{.x = 0, .y = 8}, {.x = 10, .y = 2}}}};
  panel.guides = {{{.x = 0, .y = 2}, {.x = 10, .y = 2}}, {{.x = 10, .y = 2}, {.x = 10, .y = 2.1}}};
  const auto drawn = [&] { return line_chart_svg({.names = {"one"}, .panels = {panel}}); };
  const std::string head = "d=\"M440 291L433 294L433 288Z\"";
  CHECK(!holds(drawn(), head));
  panel.arrows = true;
  CHECK(holds(drawn(), head));
  INFO("the other is too short for one");
  const std::string svg = drawn();
  CHECK(svg.find("Z\"") == svg.rfind("Z\""));
}

TEST_CASE("words of points keep clear of what the axis is of") {
  // Points at the top of 260, at y = 96, and three quarters down, at 291.
  ChartPanel panel{"x",
                   "throughput",
                   {{{.x = 0, .y = 8, .word = "top"},
                     {.x = 1, .y = 2, .word = "low"},
                     {.x = 2, .y = 8, .word = "away"}}}};
  panel.dots = Dots::Drawn;
  const std::string svg = line_chart_svg({.names = {"one"}, .panels = {panel}});
  INFO(svg);
  CHECK(holds(svg, "x=\"14\" y=\"84\" fill=\"#333333\">throughput<"));
  CHECK(holds(svg, "y=\"91\">away<"));
  CHECK(holds(svg, "y=\"110\">top<"));
  CHECK(holds(svg, "y=\"286\">low<"));
}

TEST_CASE("words of points that lie together keep clear of each other, joined where far away") {
  ChartPanel panel{"x", "y", {{}}};
  panel.curves[0] = {{.x = 0, .y = 0}, {.x = 9, .y = 9}};
  for (int i = 0; i < 12; ++i) {
    panel.curves[0].push_back(
        {.x = 5 + 0.01 * i, .y = 5, .word = "word " + std::string(1, 'a' + i)});
  }
  panel.dots = Dots::Drawn;
  const std::string svg = line_chart_svg({.names = {"one"}, .panels = {panel}});
  INFO(svg);
  // Letters of 12 pixels are 10 high above the line and 2 below, and about 6.6 wide.
  std::vector<std::pair<double, double>> corners;
  const std::regex word("<text x=\"([0-9.]+)\" y=\"([0-9.]+)\">word ");
  for (std::sregex_iterator match(svg.begin(), svg.end(), word), end; match != end; ++match) {
    corners.emplace_back(std::stod((*match)[1]), std::stod((*match)[2]));
  }
  REQUIRE(corners.size() == 12);
  for (std::size_t a = 0; a < corners.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const bool beside = std::abs(corners[a].first - corners[b].first) >= 6 * 6.6;
      CHECK((beside || std::abs(corners[a].second - corners[b].second) >= 12));
    }
  }
  CHECK(holds(svg, "stroke=\"#bbbbbb\""));
}

TEST_CASE("the word of a last point ends before the numbers of the panel beside it") {
  ChartPanel panel{"devices", "time", {{{.x = 0, .y = 8}, {.x = 1, .y = 4, .word = "best"}}}};
  panel.dots = Dots::Drawn;
  // Panels begin at 64 and 514, and are 380 wide; numbers of the second take some 50 before it.
  const std::string svg = line_chart_svg({.names = {"one"}, .panels = {panel, panel}});
  INFO(svg);
  std::vector<double> places;
  const std::regex word("<text x=\"([0-9.]+)\" y=\"[0-9.]+\">best<");
  for (std::sregex_iterator match(svg.begin(), svg.end(), word), end; match != end; ++match) {
    places.push_back(std::stod((*match)[1]));
  }
  REQUIRE(places.size() == 2);
  CHECK(places[0] + 4 * 6.6 < 514 - 50);
  CHECK(places[1] == 64 + 380 + 70 + 380 + 6);  // nothing lies right of the last
  const std::string fixed =
      line_chart_svg({.names = {"one"}, .panels = {panel}, .style = {.width = 400}});
  std::smatch only;
  REQUIRE(std::regex_search(fixed, only, word));
  CHECK(std::stod(only[1]) + 4 * 6.6 <= 400);
}

TEST_CASE("panels below each other keep the names of their axes apart") {
  const ChartPanel panel{"across", "up", {{{0, 8}, {5, 2}}}};
  const std::string svg =
      line_chart_svg({.names = {"one"}, .panels = {panel, panel}, .style = {.width = 320}});
  INFO(svg);
  const auto height_of = [&](std::size_t end) {
    const std::size_t at = svg.rfind("y=\"", end) + 3;
    return std::stod(svg.substr(at));
  };
  const std::size_t across = svg.find(">across<");
  CHECK(height_of(svg.find(">up<", across)) - height_of(across) >= 14);  // a line of 12 pixels
}

TEST_CASE("marks of a logarithmic axis are the closest 1, 2, 5 around its values") {
  using Marks = std::vector<double>;
  CHECK(logarithmic_marks({0.3, 7}) == Marks{0.2, 0.5, 1, 2, 5, 10});
  CHECK(logarithmic_marks({2, 100}) == Marks{2, 5, 10, 20, 50, 100});
  CHECK(logarithmic_marks({1, 1}) == Marks{1, 2});
}

TEST_CASE("bars of a page have patterns of their own name, and say what they show") {
  BarChart chart{.bar_label = "device", .label = "share (%)", .unit = 0.01};
  chart.parts = {{"idle", "#e5e5e5", Hatch::Rising}};
  chart.panels = {{.bars = {"7"}, .values = {{1.0 / 3}}}};
  CHECK(holds(bar_chart_svg(chart), "<title>device 7, idle: 0.3333333333333333</title>"));
  chart.page_id = "scenario-4-";
  const std::string html = bar_chart_html(chart);
  INFO(html);
  CHECK(holds(html, "<pattern id=\"scenario-4-part-0\""));
  CHECK(holds(html, "fill=\"url(#scenario-4-part-0)\""));
  CHECK(holds(html, "<title>device 7, idle, share (%): 33.33</title>"));
}

TEST_CASE("bars of devices stand in the order of their numbers, whatever their ranks are") {
  ReadResult result{.file = "r.json", .name = "toy"};
  result.values = {{"busy", 0.5}, {"useful", 0.5}, {"peak_memory_bytes", 1}};
  result.simulated = {{.device = 160, .metrics = {.busy = 0.75, .useful = 0.5}},
                      {.device = 2, .metrics = {.busy = 0.25}}};
  const std::vector<std::string> order = {"2", "160"};
  const BarChart chart = utilisation_figure({result});
  CHECK(chart.panels[0].bars == order);
  CHECK(chart.panels[0].values == std::vector<std::vector<double>>{{0, 0.25}, {0.5, 0.25}});
  CHECK(memory_figure({result}).panels[0].bars == order);
}

}  // namespace interlock::line_chart_test
