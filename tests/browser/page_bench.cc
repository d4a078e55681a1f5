// How large pages of many tasks are, and how long a browser takes to draw them. Prints a table.
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "reports/report.h"
#include "tests/browser/chromium.h"

using namespace interlock;

namespace {

ScenarioResult pipeline(int devices, int micro_batches, int steps, const std::string& variation) {
  const std::string text = R"({
    "model": {"kind": "profile", "modules": [{"repeat": )" +
                           std::to_string(devices) + R"(, "forward": "1 ms",
      "backward_input": "1 ms", "backward_weight": "1 ms", "head": "0.5 ms", "output": "1 MiB",
      "stash": "4 MiB", "parameters": "16 MiB"}]},
    "cluster": {"kind": "uniform", "devices": )" +
                           std::to_string(devices) + R"(,
      "memory": "80 GiB", "link": {"bandwidth": "10 GB/s", "latency": "3 us"}},
    "training": {"strategy": "global", "schedule": "1f1b", "micro_batches": )" +
                           std::to_string(micro_batches) + R"(, "steps": )" +
                           std::to_string(steps) + "}" + variation + "}";
  return run_scenario(load_questions(parse_json(text, "bench.json")).at(0), true);
}

void print_times(Chromium& browser, const char* script) {
  for (const auto& [name, value] : browser.check(script)) {
    std::printf("  %s\t%s\n", name.c_str(), value.c_str());
  }
}

void measure(Chromium& browser, const char* name, const ScenarioResult& result) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const std::string page = html_report({result});
  const std::chrono::duration<double, std::milli> made = Clock::now() - begin;
  const TraceLog& log = result.measurement.log;
  std::printf("%s\n  tasks\t%zu\n  made (ms)\t%.0f\n  page (MB)\t%.2f\n", name,
              log.spans.size() + log.transfers.size(), made.count(),
              static_cast<double>(page.size()) / 1e6);
  browser.open(page);
  print_times(browser, "speed_checks.js");
}

/// Measures changes on the studio's page that is a file: GPT-2 XL, 64 micro-batches, 9760 tasks.
void measure_studio(Chromium& browser) {
  const std::string page =
      (std::filesystem::temp_directory_path() / "interlock-page-bench.html").string();
  const std::string command =
      "'" INTERLOCK_PROGRAM "' studio '" PROJECT_FOLDER
      "/scenarios/examples/gpt2-xl-1f1b.json' --set training.micro_batch_size=1 --quiet --out '" +
      page + "'";
  if (std::system(command.c_str()) != 0) return;
  std::puts("the studio as a file, 8 stages x 64 micro-batches, 2 steps");
  browser.visit("file://" + page);
  print_times(browser, "studio_speed_checks.js");
  std::filesystem::remove(page);
}

}  // namespace

int main(int argc, char** argv) {
  const auto program = find_chromium();
  if (!program) {
    std::fputs("no Chromium (Debian: chromium)\n", stderr);
    return 2;
  }
  Chromium browser(*program);
  browser.open("<!DOCTYPE html><title>fonts are loaded now</title><p>");
  measure_studio(browser);
  if (argc > 1 && std::string(argv[1]) == "studio") return 0;
  const std::string jitter = R"(, "variation": {"jitter": {"spread": 0.05}, "seeds": 1})";
  measure(browser, "64 devices x 256 micro-batches", pipeline(64, 256, 3, ""));
  measure(browser, "64 devices x 256 micro-batches, jitter", pipeline(64, 256, 3, jitter));
  measure(browser, "64 devices x 1024 micro-batches", pipeline(64, 1024, 4, ""));
  measure(browser, "64 devices x 1024 micro-batches, jitter", pipeline(64, 1024, 4, jitter));
}
