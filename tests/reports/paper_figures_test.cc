// Figures for papers: well-formed, and their numbers are the results' to the last digit.
// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/paper_figures.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/text.h"
#include "reports/charts/chart_axes.h"
#include "reports/charts/measures.h"
#include "reports/charts/swept.h"
#include "reports/report.h"
#include "tests/reports/support/golden.h"
#include "tests/reports/support/markup.h"

namespace interlock::paper_figures_test {
namespace {

/// Results of two devices each, made by hand: `strategies` x devices 1, 2, 4.
std::vector<ReadResult> sweep_of(const std::vector<std::string>& strategies) {
  std::vector<ReadResult> results;
  for (const std::string& strategy : strategies) {
    for (const int devices : {1, 2, 4}) {
      ReadResult result{.file = "r.json", .name = "toy | " + std::to_string(results.size())};
      result.swept = {{"training.strategy", strategy, std::nullopt},
                      {"cluster.devices", std::to_string(devices), devices}};
      result.devices = devices;
      const double step_time = 0.1 / 3 / devices, busy = 1.0 / 3 + 0.1 / devices;
      result.values = {{"step_time_s", step_time},
                       {"samples_per_s", 64 / step_time},
                       {"busy", busy},
                       {"useful", 0.7 * busy},
                       {"memory_capacity_bytes", 4e9},
                       {"traffic_bytes", 0},
                       {"peak_memory_bytes", 1e9 / 3 + 2e9 / devices}};
      for (const int device : {0, 1}) {
        DeviceMetrics own{.busy = 0.9 / (device + 1) / 1.1};
        own.useful = own.busy * 0.7;
        own.time[static_cast<std::size_t>(TimeUse::Forward)] = own.useful;
        own.time[static_cast<std::size_t>(TimeUse::Head)] = own.busy - own.useful;
        own.time[static_cast<std::size_t>(TimeUse::Bubble)] = 1 - own.busy;
        own.memory[static_cast<std::size_t>(MemoryClass::Weights)] = Bytes(1e9 / 3);
        own.memory[static_cast<std::size_t>(MemoryClass::Stash)] = Bytes(2e9 / devices);
        result.simulated.push_back({.device = device, .metrics = own});
      }
      results.push_back(result);
    }
  }
  return results;
}

/// The last number of each tip that holds `words`.
std::vector<double> tips(const std::string& svg, const std::string& words) {
  std::vector<double> numbers;
  for (const Element& element : read_markup(svg).elements) {
    if (element.tag != "title" || element.text.find(words) == std::string::npos) continue;
    numbers.push_back(std::stod(element.text.substr(element.text.find_last_of(' ') + 1)));
  }
  return numbers;
}

std::string svg_of(const BarChart& chart) { return bar_chart_svg(chart); }
std::string svg_of(const LineChart& chart) { return line_chart_svg(chart); }

std::string words_of(const std::string& svg) {
  std::string all;
  for (const Element& element : read_markup(svg).elements) all += element.text + "\n";
  return all;
}

}  // namespace

TEST_CASE("every figure is well-formed, has units, and names all its parts") {
  const ResultFiles files{sweep_of({"global", "local"}), {}};
  for (const std::string& figure : figure_names()) {
    if (figure == "timeline" || figure == "tradeoff" || figure == "table" || figure == "page")
      continue;
    CAPTURE(figure);
    const std::string svg = figure_svg(figure, files);
    CHECK(read_markup(svg).error == "");
    CHECK(svg == figure_svg(figure, files));
    const std::string words = words_of(svg);
    for (const char* unit : {"nan", "inf"}) CHECK(words.find(unit) == std::string::npos);
    const bool unit = words.find("(%)") != std::string::npos ||
                      words.find("(GB)") != std::string::npos ||
                      words.find("iB)") != std::string::npos;
    CHECK(unit);
  }
  CHECK(words_of(svg_of(memory_figure(files.results))).find("activation stash") !=
        std::string::npos);
  CHECK(words_of(svg_of(utilisation_figure(files.results))).find("mean: busy ") !=
        std::string::npos);
}

TEST_CASE("numbers of figures are those of results, to the last digit") {
  const std::vector<ReadResult> results = sweep_of({"global", "local"});
  std::vector<double> useful, stash, bubble, busy;
  for (const ReadResult& result : results) {
    busy.push_back(result.known("busy"));
    for (const auto& [device, metrics, bubbles] : result.simulated) {
      useful.push_back(metrics.useful);
      stash.push_back(metrics.memory[static_cast<std::size_t>(MemoryClass::Stash)].value());
      bubble.push_back(metrics.time[static_cast<std::size_t>(TimeUse::Bubble)]);
    }
  }
  CHECK(tips(svg_of(utilisation_figure(results)), ", useful: ") == useful);
  CHECK(tips(svg_of(memory_figure(results)), ", activation stash: ") == stash);
  CHECK(tips(svg_of(breakdown_figure(results)), ", bubble: ") == bubble);
  CHECK(tips(svg_of(sweep_figure(results)), ", busy ") == busy);
}

TEST_CASE("a sweep has a curve for each value of what is not its axis, in order of the axis") {
  std::vector<ReadResult> results = sweep_of({"global", "local"});
  std::swap(results[1], results[2]);
  const std::string svg = svg_of(sweep_figure(results));
  const std::string words = words_of(svg);
  CHECK(words.find("global\n") != std::string::npos);
  CHECK(words.find("local\n") != std::string::npos);
  CHECK(words.find("devices\n") != std::string::npos);
  CHECK(words.find("speed-up (×)\n") != std::string::npos);
  // Speed-up over the first: 1, 2, 4 at 1, 2, 4 devices is a straight line from the first point.
  const std::vector<double> rates = tips(svg, "samples/s ");
  REQUIRE(rates.size() == 6);
  CHECK(rates[1] == results[2].known("samples_per_s"));
  CHECK(rates[1] / rates[0] == doctest::Approx(2));
}

TEST_CASE("the Pareto front is what no other result beats in both") {
  std::vector<ReadResult> results = sweep_of({"global"});
  // Memory falls and throughput rises with devices: only the last is on the front.
  const std::string one = words_of(svg_of(pareto_figure(results)));
  CHECK(one.find("1: 2: ") != std::string::npos);
  CHECK(one.find("2: 1") == std::string::npos);
  // With throughput falling instead, all are.
  for (ReadResult& result : results) {
    result.values["samples_per_s"] = 1 / result.known("samples_per_s");
  }
  const std::string all = words_of(svg_of(pareto_figure(results)));
  CHECK(all.find("3: 0: ") != std::string::npos);
}

TEST_CASE("figures say what they need and results have not") {
  std::vector<ReadResult> same = sweep_of({"global"});
  same.resize(1);
  CHECK_THROWS_WITH_AS(sweep_figure(same), doctest::Contains("results that differ in a number"),
                       Error);
  CHECK_THROWS_WITH_AS(pareto_figure(same), doctest::Contains("there is one"), Error);
  const std::vector<ReadResult> many(13, same[0]);
  CHECK_THROWS_WITH_AS(memory_figure(many), doctest::Contains("at most 12 results"), Error);
  CHECK_THROWS_WITH_AS(figure_svg("tradeoff", {same, {}}),
                       doctest::Contains("interlock train --json"), Error);
  CHECK_THROWS_WITH_AS(figure_svg("memory", {{}, {TrainingCurve{}}}),
                       doctest::Contains("expected figure tradeoff"), Error);
}

TEST_CASE("a sweep draws the measures that it is asked for") {
  std::vector<ReadResult> results = sweep_of({"global", "local"});
  results[4].values["traffic_bytes"] = 3e6;
  const std::string svg = svg_of(sweep_figure(results, "step_time,traffic,gain"));
  CHECK(read_markup(svg).error == "");
  CHECK(words_of(svg).find("step time (ms)\n") != std::string::npos);
  CHECK(tips(svg, ", traffic ")[4] == 3e6);
  CHECK(tips(svg, ", step_time ")[1] == results[1].known("step_time_s"));
  // Gain is over the first with the same values but for the last path, devices: 1, 2, 4 each.
  const std::vector<Measured> gain = measured("gain", results);
  CHECK(*gain[0].values[2] == doctest::Approx(4));
  CHECK(*gain[0].values[3] == doctest::Approx(1));
  CHECK_THROWS_WITH_AS(sweep_figure(results, "step_tim"),
                       doctest::Contains("did you mean \"step_time\"?"), Error);
}

TEST_CASE("gain names the path of its first value, unless that speaks for itself") {
  CHECK(sweep_figure(sweep_of({"global", "local"}), "gain").subtitle ==
        "gain: throughput over that of devices 1");
  std::vector<ReadResult> results = sweep_of({"global", "local"});
  for (ReadResult& result : results) std::swap(result.swept[0], result.swept[1]);
  CHECK(sweep_figure(results, "gain").subtitle == "gain: throughput over that of global");
}

TEST_CASE("a legend has the curves that are drawn") {
  std::vector<ReadResult> results = sweep_of({"global", "local", "greedy"});
  for (ReadResult& result : results) result.strategy = result.swept.front().label;
  // Strategies other than global have no end-to-end training to compare with.
  for (ReadResult& result : results) std::swap(result.swept[0], result.swept[1]);
  std::vector<ReadResult> one = results;
  for (std::size_t r = 0; r < one.size(); ++r) one[r].swept.push_back({"x", "1", std::nullopt});
  const LineChart chart = sweep_figure(one, "break_even");
  CHECK(chart.names == std::vector<std::string>{"global, x 1"});
  REQUIRE(chart.panels.size() == 1);
  CHECK(chart.panels.front().curves.size() == 1);
  // Beside a measure that all have, all are drawn.
  CHECK(sweep_figure(one, "break_even,step_time").names.size() == 3);
}

TEST_CASE("more curves than looks are divided among panels by the first path, with equal axes") {
  std::vector<ReadResult> results;
  for (int model = 0; model < 5; ++model) {
    for (int way = 0; way < 6; ++way) {
      for (const int devices : {1, 2}) {
        ReadResult& result = results.emplace_back(sweep_of({"global"}).front());
        result.swept = {{"model", "m" + std::to_string(model), std::nullopt},
                        {"cluster.devices", std::to_string(devices), devices},
                        {"training", "w" + std::to_string(way), std::nullopt}};
        result.values["samples_per_s"] = model == 4 && way == 5 ? 4000 : 100;
      }
    }
  }
  const LineChart chart = sweep_figure(results, "gain");
  CHECK(chart.names == std::vector<std::string>{"w0", "w1", "w2", "w3", "w4", "w5"});
  REQUIRE(chart.panels.size() == 5);
  CHECK(chart.panels[4].y_label == "m4: gain (×)");
  CHECK(chart.panels[4].curves[5].back().y == doctest::Approx(40));
  CHECK(chart.panels[0].y_marks == chart.panels[4].y_marks);  // from 1 to 40: logarithmic
  std::size_t points = 0;
  for (const ChartPanel& panel : chart.panels) {
    for (const ChartCurve& curve : panel.curves) points += curve.size();
  }
  CHECK(points == results.size());
}

TEST_CASE("quantities are an axis, logarithmic where they lie far apart") {
  std::vector<ReadResult> results = sweep_of({"global"});
  const char* quantities[] = {"500 Mb/s", "5 Gb/s", "50 Gb/s"};
  for (int i = 0; i < 3; ++i) {
    results[i].swept = {{"cluster.link.bandwidth", quantities[i], std::nullopt}};
  }
  const Along along = *find_axis(results);
  CHECK(along.label == "bandwidth (Mb/s)");
  CHECK(along.values == std::vector<double>{500, 5000, 50'000});
  CHECK(along.marks == along.values);
  // 500, 5000 and 50000 are equally far from each other: 0, 190 and 380 of a panel that is 380
  // wide.
  std::vector<double> x;
  for (const Element& element : read_markup(svg_of(sweep_figure(results, "busy"))).elements) {
    if (element.tag == "circle") x.push_back(std::stod(element.attributes.at("cx")));
  }
  REQUIRE(x.size() == 3);
  CHECK(x[1] - x[0] == doctest::Approx(190));
  CHECK(x[2] - x[0] == doctest::Approx(380));
}

TEST_CASE("tables have a row for each result, or the last path across") {
  std::vector<ReadResult> results = sweep_of({"global", "local"});
  CHECK(table_figure(results, "busy") ==
        "| busy (%) | 1 | 2 | 4 |\n| --- | ---: | ---: | ---: |\n"
        "| global | 43.3 | 38.3 | 35.8 |\n| local | 43.3 | 38.3 | 35.8 |\n");
  results.resize(2);
  results[1].values["quality"] = 28.5;
  results[1].quality_measure = "perplexity";
  CHECK(table_figure(results, "step_time,quality") ==
        "|  | step time (ms) | perplexity |\n| --- | ---: | ---: |\n"
        "| 0 | 33.3 | – |\n| 1 | 16.7 | 28.50 |\n");
}

TEST_CASE("tables are LaTeX, too, and mark what does not fit") {
  std::vector<ReadResult> results = sweep_of({"global_50%"});
  results[1].fits = false;
  CHECK(table_figure(results, "busy", TableForm::Latex) ==
        "\\begin{tabular}{lrrr}\n  \\hline\n"
        "  busy (\\%) & 1 & 2 & 4 \\\\\n  \\hline\n"
        "  global\\_50\\% & 43.3 & 38.3 $^\\dagger$ & 35.8 \\\\\n  \\hline\n"
        "  \\multicolumn{4}{l}{$^\\dagger$ does not fit in the memory of a device} \\\\\n"
        "\\end{tabular}\n");
  const std::string rows = table_figure(results, "busy,useful");
  CHECK(rows.find("| 1 † | 38.3 |") != std::string::npos);
  CHECK(rows.find("| 0 | 43.3 |") != std::string::npos);
  CHECK(rows.find("\n\n† does not fit in the memory of a device\n") != std::string::npos);
}

TEST_CASE("what does not fit is marked in figures of devices") {
  std::vector<ReadResult> results = sweep_of({"global"});
  for (const char* figure : {"utilisation", "memory", "breakdown"}) {
    CAPTURE(figure);
    results[2].fits = true;
    CHECK(words_of(figure_svg(figure, {results, {}})).find("does not fit") == std::string::npos);
    results[2].fits = false;
    const std::string words = words_of(figure_svg(figure, {results, {}}));
    CHECK(words.find("does not fit; ") != std::string::npos);
    CHECK(words.find("does not fit; ") == words.rfind("does not fit; "));
  }
}

TEST_CASE("a figure is as wide as it is asked to be, and nothing lies outside") {
  const ResultFiles files{sweep_of({"global", "local"}), {}};
  for (const char* figure : {"utilisation", "memory", "breakdown", "sweep", "pareto"}) {
    for (const double width : {320.0, 640.0, 1600.0}) {
      CAPTURE(figure);
      CAPTURE(width);
      const Markup picture = read_markup(figure_svg(figure, files, {.width = width}));
      REQUIRE(picture.error == "");
      CHECK(std::stod(picture.elements[0].attributes.at("width")) == width);
      const double height = std::stod(picture.elements[0].attributes.at("height"));
      for (const Element& element : picture.elements) {
        if (element.attributes.count("x") == 0) continue;
        const double x = std::stod(element.attributes.at("x"));
        const double y = std::stod(element.attributes.at("y"));
        CHECK((x >= 0 && x < width && y <= height));
      }
    }
  }
}

TEST_CASE("a title replaces the figure's, and a long one is broken into lines") {
  const ResultFiles files{sweep_of({"global"}), {}};
  const std::string words = words_of(figure_svg("sweep", files, {.title = "Ours", .width = 480}));
  CHECK(words.find("Ours\n") != std::string::npos);
  CHECK(words.find("Utilisation and speed-up") == std::string::npos);
  const std::string title = "a title of many words that has no room in a column of a paper";
  const Markup picture = read_markup(figure_svg("sweep", files, {.title = title, .width = 320}));
  std::string joined;
  for (const Element& element : picture.elements) {
    if (element.attributes.count("font-size") == 0 || element.attributes.at("font-size") != "18")
      continue;
    CHECK(element.text.size() < 32);
    joined += (joined.empty() ? "" : " ") + element.text;
  }
  CHECK(joined == title);
}

TEST_CASE("a grey figure has no colour, and what differs in colour differs in grey") {
  const auto is_grey = [](const std::string& paint) {
    return paint.size() != 7 || paint[0] != '#' ||
           (paint.substr(1, 2) == paint.substr(3, 2) && paint.substr(3, 2) == paint.substr(5, 2));
  };
  const ResultFiles files{sweep_of({"a", "b", "c", "d", "e", "f", "g", "h"}), {}};
  for (const char* figure : {"sweep", "pareto"}) {
    const Markup picture = read_markup(figure_svg(figure, files, {.grey = true}));
    REQUIRE(picture.error == "");
    for (const Element& element : picture.elements) {
      for (const char* paint : {"fill", "stroke"}) {
        if (element.attributes.count(paint) == 0) continue;
        CHECK(is_grey(element.attributes.at(paint)));
      }
    }
  }
  std::vector<std::string> looks, paints;
  for (std::size_t i = 0; i < 8; ++i) {
    const Look look = curve_look(i, true);
    looks.push_back(look.dash + "|" + std::to_string(look.shape) + (look.hollow ? "o" : ""));
  }
  for (std::size_t i = 0; i < 12; ++i) {
    const Paint paint = grey_paint(i);
    CHECK(is_grey(paint.colour));
    paints.push_back(paint.colour + std::to_string(static_cast<int>(paint.hatch)));
  }
  for (std::vector<std::string>* all : {&looks, &paints}) {
    std::sort(all->begin(), all->end());
    CHECK(std::adjacent_find(all->begin(), all->end()) == all->end());
  }
}

TEST_CASE("a utilisation figure of four stages looks as it did, beside its closed form") {
  // GPipe, p = 4, m = 8, equal stages: busy m / (m + p - 1) = 72.7 % on every device, all useful.
  ReadResult result{.file = "four.json", .name = "four equal stages, GPipe", .devices = 4};
  result.values = {{"step_time_s", 33e-3}, {"busy", 8.0 / 11}, {"useful", 8.0 / 11}};
  for (int device = 0; device < 4; ++device) {
    result.simulated.push_back(
        {.device = device, .metrics = {.busy = 8.0 / 11, .useful = 8.0 / 11}});
  }
  const std::string svg = svg_of(utilisation_figure({result}));
  CHECK(tips(svg, ", useful: ") == std::vector<double>(4, 8.0 / 11));
  CHECK(words_of(svg).find("72.7\n") != std::string::npos);
  check_golden("utilisation_four_stages.svg", svg);
}

TEST_CASE("timelines of several runs have one scale of time") {
  const auto run = [](const char* schedule) {
    const std::string text = std::string(R"({"name": "four | )") + schedule + R"(",
      "model": {"kind": "profile", "modules": [{"repeat": 4, "forward": "1 ms",
        "backward_input": "1 ms", "backward_weight": "1 ms"}]},
      "cluster": {"kind": "uniform", "devices": 4, "memory": "80 GiB",
        "link": {"bandwidth": "1000 PB/s"}},
      "training": {"strategy": "global", "schedule": ")" +
                             schedule + R"(", "micro_batches": 4, "steps": 4}})";
    return run_scenario(load_questions(parse_json(text, "four.json")).front(), true);
  };
  // Naive: 4 x 4 x 3 = 48 ms a step; GPipe (4 + 3) x 3 = 21 ms. Two naive steps are 96 ms, but the
  // window of four GPipe steps has only 84: the plot of 1050 shows those, 12.5 for each ms.
  const std::string svg = svg_timelines({run("naive"), run("gpipe")}, {});
  const Markup picture = read_markup(svg);
  REQUIRE(picture.error == "");
  int forwards = 0, wrong = 0;
  for (const Element& element : picture.elements) {
    if (element.tag != "rect" || element.parent_fill != "#0072b2") continue;
    ++forwards;
    wrong += std::abs(std::stod(element.attributes.at("width")) - 12.5) > 0.011;
  }
  INFO("84 ms hold 1.75 naive steps and 4 of GPipe");
  CHECK(forwards > 4 * 4 * 5);
  CHECK(wrong <= 1);  // one may be cut at the end
  const std::string words = words_of(svg);
  CHECK(words.find("naive: step time 48.0 ms, busy 25.0%") != std::string::npos);
  CHECK(words.find("gpipe: step time 21.0 ms, busy 57.1%") != std::string::npos);
}

}  // namespace interlock::paper_figures_test
