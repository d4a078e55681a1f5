// Reports in a browser: moved, zoomed, chosen from, narrow and dark. Exit code 77 without Chromium.
// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>

#include "base/file.h"
#include "reports/page/sizing_page.h"
#include "reports/page/training_page.h"
#include "reports/report.h"
#include "scenarios/starter/sizing.h"
#include "tests/browser/page_test.h"
#include "tests/support/skipped.h"

using namespace interlock;

namespace {

/// Pipelines of equal stages: interlocking with messages of some length, or global.
ScenarioResult pipeline(const std::string& strategy, int devices, int micro_batches) {
  const std::string text = R"({
    "name": "four stages", "model": {"kind": "profile", "modules": [{"repeat": )" +
                           std::to_string(2 * devices) + R"(, "forward": "1 ms",
      "backward_input": "1 ms", "backward_weight": "1 ms", "head": "0.5 ms", "output": "1 MiB",
      "stash": "4 MiB", "parameters": "16 MiB"}]},
    "cluster": {"kind": "uniform", "devices": )" +
                           std::to_string(devices) + R"(,
      "memory": "80 GiB", "link": {"bandwidth": "10 GB/s", "latency": "3 us"}},
    "training": {"strategy": )" +
                           strategy + R"(, "micro_batches": )" + std::to_string(micro_batches) +
                           R"(, "steps": 4}})";
  return run_scenario(load_questions(parse_json(text, "test.json")).at(0), true);
}

ScenarioResult pairwise() { return pipeline(R"({"kind": "interlocking", "n_wise": 2})", 4, 8); }

/// Three schedules by three numbers of micro-batches; GPipe keeps too many of 8.
std::vector<ScenarioResult> sweep() {
  const char* const text = R"({
    "name": "four stages", "model": {"kind": "profile", "modules": [{"repeat": 4,
      "forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms", "head": "0.3 ms",
      "output": "4 MiB", "stash": "300 MiB"}]},
    "cluster": {"kind": "uniform", "devices": 4, "memory": "2 GiB",
      "link": {"bandwidth": "10 GB/s"}},
    "training": {"strategy": "global", "micro_batches": 4, "steps": 2},
    "sweep": {"training.schedule": ["gpipe", "1f1b", "zb-h1"],
      "training.micro_batches": [8, 2, 4]}})";
  std::vector<ScenarioResult> results;
  for (const Question& scenario : load_questions(parse_json(text, "test.json"))) {
    results.push_back(run_scenario(scenario, true));
  }
  return results;
}

/// Losses that fall, of steps that take 2 ms or 3 ms.
TrainingCurve training(const std::string& name, double step) {
  TrainingCurve run{.name = name, .wanted_steps = 700};
  run.simulated_step = run.measured_step = Seconds(step);
  for (int s = 0; s < run.wanted_steps; ++s) {
    run.losses.push_back(1 + 4 / (1 + s * step));
    run.ends.emplace_back(step * (s + 1));
  }
  return run;
}

}  // namespace

TEST_CASE("a report is moved and zoomed by buttons, keys, wheel and hand") {
  browser().open(html_report({pairwise()}));
  check_all("page_checks.js");
}

TEST_CASE("ops are chosen, and lead back to what they waited for") {
  browser().open(html_report({pairwise()}));
  check_all("graph_checks.js");
}

TEST_CASE("scenarios side by side share a scale of time") {
  browser().open(html_report({pairwise(), pipeline("\"global\"", 4, 8)}));
  check_all("linked_checks.js");
}

TEST_CASE("reports fit narrow windows, and light and dark ones") {
  for (const bool dark : {false, true}) {
    for (const int width : {360, 420, 800, 1280}) {
      INFO(width << " pixels, " << std::string(dark ? "dark" : "light"));
      browser().open(html_report({pairwise(), pipeline("\"global\"", 4, 8)}),
                     {.width = width, .dark = dark});
      check_all("look_checks.js");
      keep_picture((dark ? "dark-" : "light-") + std::to_string(width));
    }
  }
}

TEST_CASE("bars of where time goes are as high as they say, in the colours of the page") {
  for (const int width : {360, 1280}) {
    INFO(width << " pixels");
    browser().open(html_report({pairwise()}), {.width = width, .dark = width == 360});
    check_all("breakdown_checks.js");
  }
}

TEST_CASE("a sweep's measures are chosen, and its cells and points lead to sections") {
  for (const int width : {420, 1280}) {
    INFO(width << " pixels");
    browser().open(html_report(sweep()), {.width = width, .dark = width == 420});
    check_all("sweep_checks.js");
    keep_picture("sweep-" + std::to_string(width));
  }
}

TEST_CASE("losses show beside the pointer, and runs can be switched off") {
  for (const int width : {420, 1280}) {
    INFO(width << " pixels");
    browser().open(training_html({training("fast", 2e-3), training("slow", 3e-3)}),
                   {.width = width});
    check_all("losses_checks.js");
    keep_picture("losses-" + std::to_string(width));
  }
}

TEST_CASE("sizes stand in a table and as curves, the recommended one marked") {
  const Sizing sizing = size_up({.model = "gpt2",
                                 .machines = {{"dgx-a100-40g", ""}, {"dgx-h100", ""}},
                                 .devices = {2, 4, 8},
                                 .length = 1e9,
                                 .batch = 65536,
                                 .overrides = {"search.tensor=1", "search.pipeline=1"}},
                                1);
  for (const int width : {420, 1280}) {
    INFO(width << " pixels");
    browser().open(sizing_html(sizing), {.width = width, .dark = width == 420});
    check_all("sizing_checks.js");
    keep_picture("sizing-" + std::to_string(width));
  }
}

TEST_CASE("the picture docs/report.png is as wide and about as high as the report that it shows") {
  const std::string path = PROJECT_FOLDER "/docs/report.png";
  const std::string text = read_file(PROJECT_FOLDER "/scenarios/quickstart/pairwise.json");
  const Question question =
      load_questions(parse_json(text, PROJECT_FOLDER "/scenarios/quickstart/pairwise.json")).at(0);
  browser().open(html_report({run_scenario(question, true)}), {.width = 1240});
  check_all("picture_checks.js");
  check_picture(path, browser().screenshot(".selection"));
}

int main(int argc, char** argv) {
  if (!find_chromium()) {
    tell_skipped("reports in a browser", "chromium");
    return 77;
  }
  return doctest::Context(argc, argv).run();
}
