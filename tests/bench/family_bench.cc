// Every schedule family against the heap loop, and searches against hand-made schedules.
// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/family_bench.h"

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "scenarios/plan/lower_plan.h"
#include "scenarios/simulate/run_scenario.h"
#include "tests/bench/heap_loop.h"
#include "tests/bench/timing.h"

namespace interlock {

namespace {

/// As the heap loop's case: a device's share of the model takes 1 ms forward and 2 ms backward, a
/// transfer 10 us on the wire and 5 us more.
std::string pipeline(const std::string& strategy, const std::string& schedule, int devices,
                     int micro_batches) {
  return R"({"model": {"kind": "profile", "modules": [
    {"repeat": )" +
         std::to_string(4 * devices) +
         R"(, "forward": "250 us", "backward_input": "250 us", "backward_weight": "250 us",
     "output": "1 MB", "stash": "1 MB"}]},
  "cluster": {"kind": "uniform", "devices": )" +
         std::to_string(devices) +
         R"(, "memory": "80 GB", "link": {"bandwidth": "100 GB/s", "latency": "5 us"}},
  "partition": "uniform",
  "training": {"strategy": ")" +
         strategy + R"(", "schedule": )" + schedule + R"(, "micro_batches": )" +
         std::to_string(micro_batches) + R"(, "steps": 1}})";
}

std::optional<Plan> load(const std::string& text) {
  try {
    return lay_out(load_questions(parse_json(text, "bench")).front()).draft;
  } catch (const Error&) {
    return std::nullopt;  // the family does not take this size
  }
}

void run_family(const ScheduleEntry& entry, int rounds) {
  const HeapLoopCase yardstick{.stages = 512, .micro_batches = 1024};
  const std::string schedule =
      entry.slices ? R"({"kind": ")" + entry.name + R"(", "slices": 4})" : '"' + entry.name + '"';
  const auto plan = load(pipeline(entry.global() ? "global" : "local", schedule, yardstick.stages,
                                  yardstick.micro_batches));
  if (!plan) return;
  const LowerInputs inputs = lower_inputs(*plan);
  std::vector<double> lowering, running, ratios;
  std::int64_t tasks = 0;
  std::size_t instructions = 0;
  for (int round = 0; round < rounds; ++round) {
    HeapLoopResult reference;
    const double heap = seconds_of([&] { reference = run_heap_loop(yardstick); });
    Program program;
    RunSummary summary;
    lowering.push_back(seconds_of([&] { program = lower_plan(*plan, inputs, 1); }));
    running.push_back(seconds_of([&] { summary = run_native(program, {}); }));
    tasks = summary.tasks;
    instructions = program.instructions.size();
    const double own = (lowering.back() + running.back()) / static_cast<double>(tasks);
    ratios.push_back(own / (heap / static_cast<double>(reference.tasks)));
  }
  std::printf("%-20s %10lld  %12zu  %9.1f  %9.1f  %9.2f\n", entry.name.c_str(),
              static_cast<long long>(tasks), instructions, median(lowering) * 1e3,
              median(running) * 1e3, median(ratios));
  std::fflush(stdout);
}

Seconds step_time(const std::string& text) {
  return run_scenario(load_questions(parse_json(text, "bench")).front(), false)
      .measurement.metrics.step_time;
}

void run_search(int devices, int micro_batches) {
  auto of = [&](const std::string& schedule) {
    return pipeline("global", schedule, devices, micro_batches);
  };
  Seconds found;
  const double wall = seconds_of([&] { found = step_time(of("\"auto\"")); });
  std::printf("auto, p = %d, m = %d: %.2f s, step %.3f ms; zb-h1 %.3f ms, zb-h2 %.3f ms\n", devices,
              micro_batches, wall, found.value() * 1e3, step_time(of("\"zb-h1\"")).value() * 1e3,
              step_time(of("\"zb-h2\"")).value() * 1e3);
  std::string text = of("\"auto\"");
  text.insert(text.rfind("\"training\""), R"("parallel": {"placement": "v", "stages": )" +
                                              std::to_string(2 * devices) + "},\n  ");
  const double wall_v = seconds_of([&] { found = step_time(text); });
  std::printf("auto in a V, p = %d, m = %d: %.2f s, step %.3f ms; zb-v %.3f ms\n", devices,
              micro_batches, wall_v, found.value() * 1e3, step_time(of("\"zb-v\"")).value() * 1e3);
  std::fflush(stdout);
}

}  // namespace

void run_families(int rounds) {
  std::printf(
      "\nEvery family, 512 devices x 1024 micro-batches, one step, median of %d rounds\n"
      "schedule                  tasks  instructions   lower ms     run ms   ratio to the heap "
      "loop\n",
      rounds);
  for (const ScheduleEntry& entry : schedule_catalogue()) {
    if (entry.name != "file" && entry.name != "auto") {
      run_family(entry, rounds);
    }
  }
}

void run_searches() {
  std::printf("\nSearch for a schedule\n");
  run_search(8, 32);
  run_search(16, 64);
}

}  // namespace interlock
