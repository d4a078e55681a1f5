// Replicas of a pipeline that share the cards of their nodes.
// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/contention_bench.h"

#include <cstdio>
#include <string>
#include <vector>

#include "scenarios/plan/lower_plan.h"
#include "scenarios/simulate/run_scenario.h"
#include "sim/engines/engines.h"
#include "tests/bench/in_child.h"
#include "tests/bench/timing.h"

namespace interlock {

namespace {

constexpr int kStages = 64, kMicroBatches = 64, kReplicas = 8;

struct ContentionCase {
  int megabytes = 1;   // of a message; a card carries 100 GB/s
  bool alike = false;  // else replica r is 1.3 r % slower, so that messages leave one by one
};

/// A stage's replicas are the devices of a node, which share `cards`.
Program make_program(const ContentionCase& one, int cards) {
  std::string stragglers;
  for (int device = 0; !one.alike && device < kStages * kReplicas; ++device) {
    stragglers += device == 0 ? "" : ", ";
    stragglers += R"({"device": )" + std::to_string(device) + R"(, "slowdown": )" +
                  std::to_string(1 + 0.013 * (device % kReplicas)) + "}";
  }
  const std::string text =
      R"({"model": {"kind": "profile", "modules": [{"repeat": )" + std::to_string(kStages) +
      R"(, "forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms", "output": ")" +
      std::to_string(one.megabytes) + R"( MB"}]},
      "cluster": {"kind": "machine", "device": "a100-80g", "devices_per_node": )" +
      std::to_string(kReplicas) + R"(, "nodes": )" + std::to_string(kStages) +
      R"(, "port": {"latency": "0 s", "bandwidth": "900 GB/s"},
         "cards": {"latency": "5 us", "bandwidth": "100 GB/s", "per_node": )" +
      std::to_string(cards) + R"(}},
      "parallel": {"pipeline": )" +
      std::to_string(kStages) + R"(, "data": )" + std::to_string(kReplicas) +
      R"(, "order": ["data", "tensor", "context", "pipeline"]},
      "training": {"strategy": "global", "schedule": "1f1b", "micro_batches": )" +
      std::to_string(kMicroBatches) + R"(, "steps": 1},
      "variation": {"stragglers": [)" +
      stragglers + R"(]},
      "simulate": {"fold": "none"}})";
  return lower_plan(make_plan(load_questions(parse_json(text, "bench")).front()), 1);
}

void run_case(const ContentionCase& one, int rounds) {
  const Program shared = make_program(one, 1), own = make_program(one, kReplicas);
  const auto tasks = static_cast<double>(count_tasks(shared));
  std::vector<double> times, ratios;
  for (int round = 0; round < rounds; ++round) {
    const auto seconds = [](const Program& program) {
      return in_child<1>([&]() -> std::array<double, 1> {
        return {seconds_of([&] { run_simgrid(program, {}); })};
      })[0];
    };
    times.push_back(seconds(shared));
    ratios.push_back(times.back() / seconds(own));
  }
  std::printf("%4d MB, %-20s %9.0f  %9.2f  %9.1f\n", one.megabytes,
              one.alike ? "all at one instant" : "one by one", tasks, median(times) / tasks * 1e6,
              median(ratios));
  std::fflush(stdout);
}

}  // namespace

void run_contention(int rounds) {
  load_simgrid();
  std::printf(
      "\nShared cards, %d stages x %d micro-batches x %d replicas, median of %d rounds\n"
      "messages                          tasks  us / task  own cards = 1\n",
      kStages, kMicroBatches, kReplicas, rounds);
  for (const bool alike : {false, true}) {
    for (const int megabytes : {1, 10, 40}) run_case({megabytes, alike}, rounds);
  }
}

}  // namespace interlock
