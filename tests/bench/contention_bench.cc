// Replicas of a pipeline that share the cards of their nodes.
// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/contention_bench.h"

#include <cstdio>
#include <string>
#include <vector>

#include "scenarios/plan/lower_plan.h"
#include "scenarios/simulate/run_scenario.h"
#include "sim/engines/engines.h"
#include "sim/sharing/fair_share.h"
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
  using Engine = RunSummary (*)(const Program&, const TraceSink&);
  const auto seconds = [](const Program& program, Engine engine) {
    return in_child<1>(
        [&]() -> std::array<double, 1> { return {seconds_of([&] { engine(program, {}); })}; })[0];
  };
  std::vector<double> times, speedups, simgrid_ratios, native_ratios;
  for (int round = 0; round < rounds; ++round) {
    const double simgrid = seconds(shared, run_simgrid), native = seconds(shared, run_event_loop);
    times.push_back(native);
    speedups.push_back(simgrid / native);
    simgrid_ratios.push_back(simgrid / seconds(own, run_simgrid));
    native_ratios.push_back(native / seconds(own, run_event_loop));
  }
  std::printf("%4d MB, %-20s %9.0f  %9.2f  %11.1f  %11.1f  %11.1f\n", one.megabytes,
              one.alike ? "all at one instant" : "one by one", tasks, median(times) / tasks * 1e6,
              median(speedups), median(native_ratios), median(simgrid_ratios));
  std::fflush(stdout);
}

/// Flows of an all-to-all in a tree of `nodes` nodes of eight, each between the cards of two nodes
/// as a hierarchical exchange has them, and those within the nodes; sizes differ or are the same.
void run_all_to_all(int nodes, bool alike, int rounds) {
  constexpr int kPerNode = 8;
  const int members = nodes * kPerNode;
  // Ports up and down of each member, then cards out and in of each node.
  std::vector<double> bandwidths(static_cast<std::size_t>(2 * members), 400e9);
  bandwidths.resize(bandwidths.size() + static_cast<std::size_t>(2 * nodes), 50e9);
  std::vector<std::vector<int>> ways;
  for (int member = 0; member < members; ++member) {
    const int node = member / kPerNode;
    for (int other = node * kPerNode; other < (node + 1) * kPerNode; ++other) {
      if (other != member) ways.push_back({2 * member, 2 * other + 1});
    }
  }
  for (int from = 0; from < nodes; ++from) {
    for (int to = 0; to < nodes; ++to) {
      if (from != to) ways.push_back({2 * (members + from), 2 * (members + to) + 1});
    }
  }
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    FairShare flows(bandwidths, ways);
    times.push_back(seconds_of([&] {
      for (std::size_t flow = 0; flow < ways.size(); ++flow) {
        const double size = alike ? 1 : 1 + 0.01 * static_cast<double>(flow * 7919 % 101);
        flows.add(static_cast<int>(flow), 1e6 * size);
      }
      double now = 0;
      for (std::size_t ended = 0; ended < ways.size();) {
        now = flows.next_end(now);
        ended += flows.take_ended(now).size();
      }
    }));
  }
  std::printf("%7d  %-20s %9zu  %9.2f  %11.3f\n", members, alike ? "equal" : "a hundred sizes",
              ways.size(), median(times) / static_cast<double>(ways.size()) * 1e6,
              median(times) * 1e3);
}

}  // namespace

void run_contention(int rounds) {
  load_simgrid();
  std::printf(
      "\nShared cards, %d stages x %d micro-batches x %d replicas, median of %d rounds\n"
      "                                            native  times as fast  over cards of their own\n"
      "messages                          tasks  us / task   as SimGrid       native      SimGrid\n",
      kStages, kMicroBatches, kReplicas, rounds);
  for (const bool alike : {false, true}) {
    for (const int megabytes : {1, 10, 40}) run_case({megabytes, alike}, rounds);
  }
  std::printf(
      "\nHierarchical all-to-all, solver alone\n"
      "members  sizes                    flows  us / flow           ms\n");
  for (const bool alike : {true, false}) {
    for (const int nodes : {8, 16, 32, 64}) run_all_to_all(nodes, alike, rounds);
  }
}

}  // namespace interlock
