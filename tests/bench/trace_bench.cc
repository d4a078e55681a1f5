// A pipeline with transfers and memory, written to nowhere.
// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/trace_bench.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "reports/result/gzip.h"
#include "reports/traces/trace_events.h"
#include "tests/bench/timing.h"

namespace interlock {

namespace {

ScenarioResult pipeline(int stages, int micro_batches) {
  const std::string text = R"({"model": {"kind": "profile", "modules": [{"repeat": )" +
                           std::to_string(stages) + R"(, "forward": "1 ms",
      "backward_input": "1 ms", "backward_weight": "1 ms", "output": "1 MB", "stash": "4 MB"}]},
    "cluster": {"kind": "uniform", "devices": )" +
                           std::to_string(stages) +
                           R"(, "memory": "80 GiB", "link": {"bandwidth": "10 GB/s"}},
    "training": {"strategy": "global", "micro_batches": )" +
                           std::to_string(micro_batches) + R"(, "steps": 1}})";
  return run_scenario(load_questions(parse_json(text, "bench")).front(), true);
}

struct Size {
  std::size_t bytes = 0, events = 0;
};

/// Events are lines, but for the first and the last.
Size size_of(const TextSource& text) {
  Size size;
  text([&](std::string_view piece) {
    size.bytes += piece.size();
    size.events += static_cast<std::size_t>(std::count(piece.begin(), piece.end(), '\n'));
  });
  size.events -= 2;
  return size;
}

void run_case(int stages, int micro_batches, int rounds) {
  const ScenarioResult run = pipeline(stages, micro_batches);
  const TextSource text = trace_events(run);
  const Size plain = size_of(text), packed = size_of(gzip(text));
  std::vector<double> seconds, compressed;
  const TextSink nowhere = [](std::string_view) {};
  for (int round = 0; round < rounds; ++round) {
    seconds.push_back(seconds_of([&] { text(nowhere); }));
    compressed.push_back(seconds_of([&] { gzip(text)(nowhere); }));
  }
  const auto events = static_cast<double>(plain.events);
  std::printf("%6d x %-6d %9zu  %8.1f  %14.2f  %8.1f  %14.2f\n", stages, micro_batches,
              plain.events, static_cast<double>(plain.bytes) / 1e6, events / median(seconds) / 1e6,
              static_cast<double>(packed.bytes) / 1e6, events / median(compressed) / 1e6);
  std::fflush(stdout);
}

}  // namespace

void run_traces(int rounds) {
  std::printf(
      "trace-event JSON of 1F1B with transfers and memory, median of %d rounds\n"
      "  stages x M        events        MB  million ev./s  gzip, MB  million ev./s\n",
      rounds);
  run_case(8, 256, rounds);
  run_case(64, 512, rounds);
}

}  // namespace interlock
