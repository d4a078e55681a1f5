// Terminal table: the right numbers, in columns, within the width of the terminal.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sstream>

#include "reports/headlines/explanation_headlines.h"
#include "reports/report.h"
#include "reports/terminal/layout.h"
#include "reports/words/encode.h"
#include "tests/reports/support/golden.h"
#include "tests/reports/support/handmade.h"

namespace interlock::table_test {

namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) {
    widest = std::max(widest, display_width(line));
  }
  return widest;
}

ScenarioResult too_large() {
  auto result = pipeline_run({});
  result.plan.question.name = "A long name that a person gave to a scenario that does not fit";
  result.measurement.metrics.fits_in_memory = false;
  set_memory(result.measurement.metrics, Bytes(30.0 * 1024 * 1024 * 1024));
  return result;
}

}  // namespace

TEST_CASE("the table of one scenario looks as it did") {
  check_golden("one_scenario.txt", terminal_table({pipeline_run({})}, {}));
}

TEST_CASE("the table of several scenarios looks as it did") {
  check_golden("several_scenarios.txt",
               terminal_table({two_devices(), pipeline_run({}), too_large()}, {}));
}

TEST_CASE("the figures of one scenario are those of its metrics") {
  const std::string text = terminal_table({two_devices()}, {});
  for (const char* expected :
       {"6.00 ms", "21.3 k samples/s", "25.0%", "50.0%", "250 us", "4.2% of a step",  // 0.25 / 6
        "32.0 GiB", "of 80.0 GiB on device 0; fits, 48.0 GiB to spare",               // 80 - 32
        "Limiting device  1", "stage 1, busy 50.0%", "stash 62%, optimiser 19%"}) {
    CAPTURE(expected);
    CHECK(holds(text, expected));
  }
}

TEST_CASE("idle time is told with all its parts, of which the bubble is the pipeline's alone") {
  auto result = two_devices();
  Metrics& metrics = result.measurement.metrics;
  metrics.step_time = Seconds(1e-3);
  metrics.busy = 0.5;
  metrics.explanation = Explanation{};
  metrics.explanation->devices.resize(2);
  const auto at = [&](std::size_t device, BubbleCause cause) -> double& {
    return metrics.explanation->devices[device][static_cast<std::size_t>(cause)];
  };
  at(0, BubbleCause::Fill) = 0.1e-3;  // of 1 ms, and half of that as a mean of two devices
  at(0, BubbleCause::Gradient) = 0.2e-3;
  at(1, BubbleCause::Gradient) = 0.2e-3;
  at(0, BubbleCause::Exchange) = 0.3e-3;
  at(1, BubbleCause::Message) = 0.14e-3;
  at(1, BubbleCause::Unknown) = 0.06e-3;
  const Headline idle = idle_headline(metrics);
  CHECK(idle.label == "Idle");
  CHECK(idle.value == "50.0%");
  CHECK(idle.note ==
        "of a step: bubble 25.0% (waiting for gradients 20.0%, fill 5.0%), exchanges inside ops "
        "15.0%, messages on their way 7.0%, between ops 3.0%");
}

TEST_CASE("idle time whose causes are not known is bubble and communication") {
  auto result = two_devices();
  Metrics& metrics = result.measurement.metrics;
  for (DeviceMetrics& device : metrics.devices) device.time = {};
  const auto at = [&](std::size_t device, TimeUse use) -> double& {
    return metrics.devices[device].time[static_cast<std::size_t>(use)];
  };
  at(0, TimeUse::Bubble) = 0.5;
  at(1, TimeUse::Exposed) = 0.25;
  CHECK(idle_headline(metrics).note == "of a step: bubble 25.0%, exposed communication 12.5%");
}

TEST_CASE("several scenarios are compared by throughput with the first") {
  auto faster = two_devices();
  faster.measurement.metrics.step_time = Seconds(0.004);
  faster.measurement.metrics.samples_per_s = 128 / 4e-3;
  const Grid grid = comparison_grid({two_devices(), faster});
  CHECK(grid.rows[0][2].text == "1.00");
  CHECK(grid.rows[1][2].text == "1.50");
  CHECK(grid.columns[3].unit == "samples/s");
  auto unknown = faster;
  unknown.measurement.metrics.samples_per_s = std::nullopt;
  CHECK(comparison_grid({two_devices(), unknown}).columns[3].unit == "steps/s");
}

TEST_CASE("what a GPU does is a column where devices differ in number, or in their peak") {
  const auto heads = [](const std::vector<ScenarioResult>& results) {
    std::string text;
    for (const Column& column : comparison_grid(results).columns) {
      text += column.head + " " + column.unit + ",";
    }
    return text;
  };
  ScenarioResult one = two_devices(), other = two_devices();
  one.measurement.metrics.mfu = other.measurement.metrics.mfu = 0.5;
  one.plan.question.cluster.machines.front().device.peak[0] = FlopsPerSecond(100e12);
  other.plan.question.cluster.machines.front().device.peak[0] = FlopsPerSecond(300e12);
  one.plan.question.training().precision = other.plan.question.training().precision = Precision{};
  CHECK(!holds(heads({one, one}), "Each GPU"));
  CHECK(holds(heads({one, other}), "Each GPU TFLOP/s,"));
  const Grid grid = comparison_grid({one, other});
  MESSAGE("half of 100 and of 300 TFLOP/s");
  CHECK(grid.rows[0].back().text == "50.0");
  CHECK(grid.rows[1].back().text == "150.0");
  CHECK(holds(terminal_table({one}, {}), "50.0 TFLOP/s/GPU"));
  other = one;
  other.measurement.metrics.devices_total = 4;
  CHECK(holds(heads({one, other}), "Each GPU samples/s,"));
  MESSAGE("four devices for an hour");
  other.measurement.metrics.step_time = Seconds(3600);
  CHECK(holds(heads({one, other}), "GPU-hours a step,"));
  CHECK(comparison_grid({one, other}).rows[1].back().text == "4.000");
  CHECK(!holds(heads({other, other}), "GPU-hours"));
  CHECK(holds(terminal_table({other}, {}), "samples/s/GPU; 4 GPU-hours a step"));
}

TEST_CASE("models without samples are compared by micro-batches, not by steps of any size") {
  auto few = two_devices(), many = two_devices();
  for (auto* result : {&few, &many}) result->measurement.metrics.samples_per_s = std::nullopt;
  few.measurement.metrics.micro_batches_per_step = 4;
  few.measurement.metrics.step_time = Seconds(6e-3);
  many.measurement.metrics.micro_batches_per_step = 64;
  many.measurement.metrics.step_time = Seconds(24e-3);
  const Grid grid = comparison_grid({few, many});
  CHECK(grid.rows[1][2].text == "4.00");  // 16 times the work in 4 times the time
  CHECK(grid.columns[3].unit == "micro-batches/s");
}

TEST_CASE("a comparison says how much memory is left, and warns where it is too little") {
  const Grid grid = comparison_grid({two_devices(), too_large()});
  CHECK(grid.columns[8].head == "Spare");
  CHECK(grid.rows[0][8].text == "60.0");  // 32 of 80 GiB are used
  CHECK(grid.rows[1][8].text == "-6.7");  // 32 of 30 GiB
  CHECK(grid.rows[1][7].alarm);
  CHECK(grid.rows[1][8].alarm);
  CHECK_FALSE(grid.rows[0][8].alarm);
}

TEST_CASE("a name keeps its line where the terminal has room for it") {
  auto one = two_devices(), other = two_devices();
  one.plan.question.name = "pairwise interlocking";
  other.plan.question.name = "forward=recomputed";
  for (const int width : {80, 100}) {  // in two blocks, and in one
    CAPTURE(width);
    const std::string text = terminal_table({one, other}, {.colour = false, .width = width});
    CHECK(holds(text, "\npairwise interlocking  "));
    CHECK(holds(text, "\nforward=recomputed  "));
  }
}

TEST_CASE("what all names of a sweep begin with is said once") {
  auto local = two_devices(), global = two_devices();
  local.plan.question.name = "ResNet-50 | strategy=local";
  global.plan.question.name = "ResNet-50 | strategy=global";
  const Grid grid = comparison_grid({local, global});
  CHECK(grid.rows[0][0].text == "strategy=local");
  CHECK(grid.rows[1][0].text == "strategy=global");
  CHECK(terminal_table({local, global}, {}).substr(0, 10) == "ResNet-50\n");
  CHECK(common_name({two_devices(), local}).empty());
  CHECK(common_name({local, local}) == "ResNet-50");
}

TEST_CASE("a model that does not fit is told by how much") {
  // 32 GiB against 30 GiB.
  const std::string text = terminal_table({too_large()}, {});
  CHECK(holds(text, "does not fit, over by 2.00 GiB"));
  CHECK(holds(text, "Does not fit: device 0 needs 2.00 GiB more than its 30.0 GiB."));
}

TEST_CASE("a run that is not steady says so") {
  auto result = pipeline_run({});
  CHECK_FALSE(holds(terminal_table({result}, {}), "Not steady"));
  result.measurement.metrics.steady = false;
  CHECK(holds(terminal_table({result}, {}), "Not steady"));
}

TEST_CASE("a column that wants room is left out where the table would be split for it") {
  const Grid grid = {{{"Name", "", false}, {"First", ""}, {std::string(30, 'w'), "", true, true}},
                     {{{"x"}, {"1"}, {"2"}}}};
  CHECK(holds(lay_out(grid, {.width = 60}), "www"));
  Grid wide = grid;
  wide.columns[1].head = std::string(25, 'f');
  CHECK(!holds(lay_out(wide, {.width = 60}), "www"));
  CHECK(holds(lay_out(wide, {.width = 80}), "www"));
  MESSAGE("one that is split without it keeps it");
  wide.columns[1].head = std::string(57, 'f');
  CHECK(holds(lay_out(wide, {.width = 60}), "www"));
}

TEST_CASE("no line is wider than the terminal") {
  for (int width = 60; width <= 160; width += 7) {
    CAPTURE(width);
    const TableStyle style{.colour = false, .width = width};
    const auto most = static_cast<std::size_t>(width);
    CHECK(widest_line(terminal_table({two_devices()}, style)) <= most);
    CHECK(widest_line(terminal_table({too_large()}, style)) <= most);
    CHECK(widest_line(terminal_table({too_large(), two_devices()}, style)) <= most);
    CHECK(widest_line(terminal_table({pipeline_run({100, 2, 2})}, style)) <= most);
  }
}

TEST_CASE("colour changes nothing but colour") {
  const std::string plain = terminal_table({too_large()}, {.colour = false});
  std::string coloured = terminal_table({too_large()}, {.colour = true});
  CHECK_FALSE(holds(plain, "\x1b"));
  CHECK(holds(coloured, "\x1b[31m"));
  for (std::size_t at = coloured.find('\x1b'); at != coloured.npos; at = coloured.find('\x1b')) {
    coloured.erase(at, coloured.find('m', at) - at + 1);
  }
  CHECK(coloured == plain);
}

TEST_CASE("a hundred devices are shortened, with the important ones kept") {
  auto result = pipeline_run({100, 2, 2});
  result.measurement.metrics.limiting_device = 57;
  const std::string text = terminal_table({result}, {});
  CHECK(holds(text, "Shown: 23 of 100 rows"));  // 11 from each end, and the limiting one
  CHECK(holds(text, "\n    57  57 "));
}

TEST_CASE("names cannot steer the terminal") {
  auto result = two_devices();
  result.plan.question.name = "evil \x1b[2J name";
  CHECK_FALSE(holds(terminal_table({result}, {}), "\x1b"));
  CHECK_FALSE(holds(terminal_table({result, result}, {}), "\x1b"));
}

TEST_CASE("words are wrapped, and words that are too long are cut") {
  CHECK(wrap("one two three", 7) == std::vector<std::string>{"one two", "three"});
  CHECK(wrap("abcdefghij", 4) == std::vector<std::string>{"abcd", "efgh", "ij"});
  CHECK(wrap("micro_batch=128", 10) == std::vector<std::string>{"micro_", "batch=128"});
  CHECK(wrap("a → b", 3) == std::vector<std::string>{"a →", "b"});
  CHECK(wrap("", 9) == std::vector<std::string>{""});
}

}  // namespace interlock::table_test
