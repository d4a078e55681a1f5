// SVG timeline: well-formed, true to the spans, and small.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "reports/report.h"
#include "tests/reports/support/golden.h"
#include "tests/reports/support/handmade.h"
#include "tests/reports/support/markup.h"

namespace interlock::svg_test {

namespace {

/// Widths of the bars of one colour, in the order of the file.
std::vector<double> widths(const Markup& picture, const std::string& fill) {
  std::vector<double> found;
  for (const Element& element : picture.elements) {
    if (element.tag == "rect" && element.parent_fill == fill) {
      found.push_back(std::stod(element.attributes.at("width")));
    }
  }
  return found;
}

std::string texts(const Markup& picture) {
  std::string all;
  for (const Element& element : picture.elements) all += element.text + "\n";
  return all;
}

}  // namespace

TEST_CASE("four spans of two devices look as they did") {
  check_golden("two_devices.svg", svg_timeline(two_devices()));
}

TEST_CASE("bars are as long as their spans") {
  // The plot is 1050 wide and shows 6 ms: 175 for each millisecond.
  const Markup picture = read_markup(svg_timeline(two_devices()));
  REQUIRE(picture.error == "");
  CHECK(widths(picture, "#0072b2") == std::vector<double>{175, 175});  // F: 1 ms each
  CHECK(widths(picture, "#009e73") == std::vector<double>{350, 350});  // B: 2 ms each
}

TEST_CASE("bars that are thinner than a border shows have none") {
  ScenarioResult result = two_devices();
  Span& first = result.measurement.log.spans[0];
  first.end = first.start + Seconds(1e-5);  // 1.75 wide
  const Markup picture = read_markup(svg_timeline(result));
  REQUIRE(picture.error == "");
  CHECK(widths(picture, "#0072b2") == std::vector<double>{1.75, 175});
  for (const Element& element : picture.elements) {
    if (element.tag != "rect" || element.parent_fill != "#0072b2") continue;
    const bool thin = std::stod(element.attributes.at("width")) < 2;
    CHECK(element.parent_stroke == (thin ? "" : "#ffffff"));
  }
}

TEST_CASE("messages lie in a lane for each pair of devices, as long as they travel") {
  const Markup picture = read_markup(svg_timeline(two_devices()));
  CHECK(widths(picture, "#555555") == std::vector<double>{43.75, 43.75});  // 0.25 ms, each way
  const std::string words = texts(picture);
  CHECK(words.find("0 → 1") < words.find("1 → 0"));
  CHECK(words.find("1 → 0") != std::string::npos);
  auto instant = two_devices();
  for (Transfer& transfer : instant.measurement.log.transfers) {
    transfer.end = transfer.arrival = transfer.start;
  }
  CHECK(texts(read_markup(svg_timeline(instant))).find("→") == std::string::npos);
}

TEST_CASE("a picture has title, lanes, axis with its unit, legend and caption") {
  const Markup picture = read_markup(svg_timeline(pipeline_run({})));
  REQUIRE(picture.error == "");
  const std::string words = texts(picture);
  for (const char* expected :
       {"synthetic pipeline", "device 0", "device 3", "(ms)", "F forward", "B backward, full",
        "U optimiser update", "Shown: measured steps 1 to 3 of 8.", "B7"}) {
    CAPTURE(expected);
    CHECK(words.find(expected) != std::string::npos);
  }
}

TEST_CASE("stages of a second copy of the model are named as the stages that they copy") {
  ScenarioResult result = two_devices();
  Measurement& measurement = result.measurement;
  measurement.program.copies = 2;  // stage 1 is the only stage of the model, once more
  for (int rank : {0, 1}) {
    measurement.program.ranks[rank].stages = {0, 1};
    measurement.metrics.devices[rank].stages = {0, 0};
  }
  const std::string words = texts(read_markup(svg_timeline(result)));
  CHECK(words.find("device 1 (0, 0)") != std::string::npos);
  CHECK(words.find("0F0") != std::string::npos);
  CHECK(words.find("1F0") == std::string::npos);
  const std::string page = html_report({result});
  CHECK(page.find("\"stage\":0") != std::string::npos);
  CHECK(page.find("\"stage\":1") == std::string::npos);
}

TEST_CASE("token slices are numbered within their micro-batch") {
  auto sliced = pipeline_run({.devices = 2, .micro_batches = 4, .steps = 1});
  CHECK(texts(read_markup(svg_timeline(sliced))).find("F1.1") == std::string::npos);
  sliced.measurement.program.slices = 2;  // four slices, of two micro-batches
  const std::string words = texts(read_markup(svg_timeline(sliced)));
  for (const char* label : {"F0.0\n", "F0.1\n", "F1.0\n", "F1.1\n", "B1.1\n"}) {
    CHECK(words.find(label) != std::string::npos);
  }
  CHECK(words.find("F2.0") == std::string::npos);
  CHECK(words.find("and token slices in each") != std::string::npos);
}

TEST_CASE("slices of micro-batches that differ in size are numbered within their own") {
  auto mixed = pipeline_run({.devices = 2, .micro_batches = 6, .steps = 1});
  mixed.measurement.program.slices = 6;
  mixed.measurement.program.slice_counts = {1, 1, 1, 3};
  const std::string words = texts(read_markup(svg_timeline(mixed)));
  for (const char* label : {"F0.0\n", "F1.0\n", "F2.0\n", "F3.0\n", "F3.1\n", "B3.2\n"}) {
    CHECK(words.find(label) != std::string::npos);
  }
  CHECK(words.find("F0.1") == std::string::npos);
  CHECK(words.find("F4.") == std::string::npos);
}

TEST_CASE("a traversal that trains nothing is pale") {
  auto result = two_devices();
  const std::string pale = "fill-opacity=\"0.5\"";
  CHECK(svg_timeline(result).find(pale) == std::string::npos);
  result.measurement.program.ops[4].useful = false;  // B of stage 1
  const std::string text = svg_timeline(result);
  CHECK(read_markup(text).error == "");
  CHECK(text.find(pale) != std::string::npos);
  CHECK(text.find("Pale: trains nothing") != std::string::npos);
}

TEST_CASE("a caption explains numbers and pale bars where they are drawn") {
  const auto says = [](const std::vector<ScenarioResult>& results, const std::string& words) {
    return texts(read_markup(svg_timelines(results, {}))).find(words) != std::string::npos;
  };
  const std::string numbers = "Numbers count micro-batches in a step", pale = "Pale: ";
  const auto few = pipeline_run({.devices = 4, .micro_batches = 4, .steps = 1});
  // 200 lanes on 720 pixels are 4 high each, too low for words.
  const auto low = pipeline_run({.devices = 200, .micro_batches = 4, .steps = 1});
  auto idle = few;
  for (OpInfo& op : idle.measurement.program.ops) op.useful = op.kind != OpKind::B;
  CHECK(says({few}, numbers));
  CHECK(!says({few}, pale));
  CHECK(!says({low}, numbers));
  CHECK(says({idle}, pale));
  CHECK(says({few, few}, numbers));
  CHECK(!says({few, few}, pale));
  CHECK(!says({low, low}, numbers));
  CHECK(says({low, idle}, pale));
}

TEST_CASE("large runs stay well-formed and under 500 KB, and say what is shown") {
  for (const PipelineSize size : {PipelineSize{4, 512, 3}, PipelineSize{64, 64, 3},
                                  PipelineSize{300, 30, 2}, PipelineSize{40, 200, 2}}) {
    CAPTURE(size.devices);
    const std::string text = svg_timeline(pipeline_run(size));
    CHECK(text.size() < 500'000);
    const Markup picture = read_markup(text);
    CHECK(picture.error == "");
    CHECK(texts(picture).find("Shown: ") != std::string::npos);
  }
  const std::string many = svg_timeline(pipeline_run({300, 2, 2}));
  CHECK(many.find("The first 256 of 300 devices.") != std::string::npos);
}

TEST_CASE("names cannot break the picture") {
  auto result = two_devices();
  result.plan.question.name = "</text><script>alert(1)</script> & \"x\" \x01\xff";
  const std::string text = svg_timeline(result);
  CHECK(read_markup(text).error == "");
  CHECK(text.find("<script") == std::string::npos);
}

TEST_CASE("a run in which nothing takes time still has a picture") {
  auto result = two_devices();
  result.measurement.metrics.window_end = result.measurement.metrics.window_begin;
  CHECK(read_markup(svg_timeline(result)).error == "");
}

TEST_CASE("the checker itself finds broken markup") {
  CHECK(read_markup("<a><b></a></b>").error != "");
  CHECK(read_markup("<a x=\"1\" x=\"2\"/>").error != "");
  CHECK(read_markup("<a>&nbsp;</a>").error != "");
  CHECK(read_markup("<a>").error != "");
  CHECK(read_markup("<a x=\"1\">b &amp; c<d/></a>").error == "");
}

}  // namespace interlock::svg_test
