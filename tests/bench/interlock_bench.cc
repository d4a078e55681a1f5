// interlock_bench: time and memory of the engines, as ratios to a hand-written event loop.
// SPDX-License-Identifier: Apache-2.0
//
// All figures of a row come from runs that alternate in this one process (SimGrid's in forked
// children of it), because machines drift. Prints the median over rounds of each ratio.
#include <sys/resource.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "sim/engines/engines.h"
#include "sim/lower/lower.h"
#include "sim/measure/collect.h"
#include "tests/bench/cluster_bench.h"
#include "tests/bench/contention_bench.h"
#include "tests/bench/family_bench.h"
#include "tests/bench/heap_loop.h"
#include "tests/bench/in_child.h"
#include "tests/bench/planning_bench.h"
#include "tests/bench/timing.h"
#include "tests/bench/trace_bench.h"

namespace interlock {

namespace {

Program make_program(const HeapLoopCase& c) {
  const Strategy strategy;
  LowerInputs inputs{.policy = {.kind = &schedule_named("1f1b"), .update_every = c.micro_batches},
                     .strategy = strategy,
                     .roles = make_roles(strategy, c.stages, false)};
  inputs.cluster = {.name = "mesh", .devices = c.stages, .mesh = true};
  inputs.cluster.machines.front().port_bandwidth = BytesPerSecond(1e6 / c.occupancy);
  inputs.cluster.machines.front().port_latency = Seconds(c.latency);
  StageCost stage;
  stage.forward.time = Seconds(c.forward);
  stage.backward_input.time = stage.backward_weight.time = Seconds(c.backward / 2);
  stage.output = Bytes(1e6);
  stage.stash = Bytes(4e6);
  inputs.stages.assign(c.stages, stage);
  std::vector<int> ranks(c.stages);
  std::iota(ranks.begin(), ranks.end(), 0);
  inputs.schedule = make_schedule({.stages = c.stages,
                                   .micro_batches = c.micro_batches,
                                   .rank_of_stage = ranks,
                                   .roles = inputs.roles,
                                   .policy = inputs.policy});
  return lower(inputs);
}

/// Peak resident bytes that simulating the case with metrics adds to a fresh child.
double metrics_memory(const HeapLoopCase& c) {
  return in_child<1>([&]() -> std::array<double, 1> {
    const Program program = make_program(c);
    Collector collector(program, {}, {.begin = Seconds(0), .end = Seconds(1)});
    TraceSink sink{.span = [&](const Span& span) { collector.add(span); },
                   .transfer = [&](const Transfer& transfer) { collector.add(transfer); },
                   .memory = [&](const MemoryChange& change) { collector.add(change); }};
    run_native(program, sink);
    collector.finish({});
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return {static_cast<double>(usage.ru_maxrss) * 1024};
  })[0];
}

void run_case(const HeapLoopCase& c, int rounds) {
  std::vector<double> heap, native, path, loop, simgrid;
  HeapLoopResult reference;
  for (int round = 0; round < rounds; ++round) {
    const double yardstick = seconds_of([&] { reference = run_heap_loop(c); });
    heap.push_back(yardstick / static_cast<double>(reference.tasks) * 1e9);
    RunSummary summary;
    native.push_back(seconds_of([&] { summary = run_native(make_program(c), {}); }) / yardstick);
    CHECK(std::abs(summary.makespan.value() / reference.makespan - 1) < 1e-9, "equal makespans");
    const Program program = make_program(c);
    path.push_back(seconds_of([&] { run_longest_path(program, {}); }) / yardstick);
    loop.push_back(seconds_of([&] { run_event_loop(program, {}); }) / yardstick);
    const auto [seconds] = in_child<1>(
        [&]() -> std::array<double, 1> { return {seconds_of([&] { run_simgrid(program, {}); })}; });
    simgrid.push_back(seconds / yardstick);
  }
  std::printf("%6d x %-6d %9lld  %8.1f  %9.2f  %9.2f  %9.2f  %9.2f  %9.0f\n", c.stages,
              c.micro_batches, static_cast<long long>(reference.tasks), median(heap),
              median(native), median(path), median(loop), median(simgrid), metrics_memory(c) / 1e6);
  std::fflush(stdout);
}

}  // namespace

void run_engines(int rounds) {
  load_simgrid();
  std::printf(
      "1F1B with transfers, one step; ratios to the heap loop, median of %d rounds\n"
      "  stages x M         tasks  heap loop     native       path       loop    simgrid     "
      "memory\n"
      "                            ns / task  lower+run      alone      alone     engine         "
      "MB\n",
      rounds);
  for (const auto& [stages, micro_batches] :
       {std::pair{64, 1024}, {512, 1024}, {1024, 1024}, {16384, 64}}) {
    run_case({.stages = stages, .micro_batches = micro_batches}, rounds);
  }
}

}  // namespace interlock

// interlock_bench [ROUNDS] [engines | families | searches | clusters | contention | trace |
// planning]
int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 7;
  const std::string part = count > 2 ? arguments[2] : "";
  if (part.empty() || part == "engines") interlock::run_engines(rounds);
  if (part.empty() || part == "families") interlock::run_families(rounds);
  if (part.empty() || part == "searches") interlock::run_searches();
  if (part.empty() || part == "clusters") interlock::run_clusters(rounds);
  if (part.empty() || part == "contention") interlock::run_contention(rounds);
  if (part.empty() || part == "trace") interlock::run_traces(rounds);
  if (part.empty() || part == "planning") interlock::run_planning(rounds);
  return 0;
}
