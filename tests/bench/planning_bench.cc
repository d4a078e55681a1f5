// Scenarios of 8 stages and 32 micro-batches, from document to figures; rows written and ranked.
// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/planning_bench.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "reports/sweeps/ranking.h"
#include "reports/sweeps/sweep_store.h"
#include "scenarios/search/plan_search.h"
#include "scenarios/simulate/run_scenario.h"
#include "scenarios/sweep/worker_pool.h"
#include "tests/bench/timing.h"

namespace interlock {
namespace {

/// Seconds of this process, its children left out.
double processor_seconds() {
  std::timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

JsonValue pipeline(const std::string& engine, int steps) {
  return parse_json(R"({"model": {"kind": "profile", "modules": [{"repeat": 8, "forward": "1 ms",
      "backward_input": "1 ms", "backward_weight": "1 ms", "output": "1 MB", "stash": "4 MB"}]},
    "cluster": {"kind": "uniform", "devices": 8, "memory": "80 GiB",
                "link": {"bandwidth": "10 GB/s"}},
    "training": {"strategy": "global", "micro_batches": 32, "steps": )" +
                        std::to_string(steps) + R"(}, "simulate": {"engine": ")" + engine +
                        R"("}})",
                    "bench");
}

void time_engine(const char* engine, int steps, int rounds) {
  const JsonValue document = pipeline(engine, steps);
  const int count = std::string_view(engine) == "native" ? 400 : 40;
  std::vector<double> processor, wall;
  for (int round = 0; round < rounds; ++round) {
    const double before = processor_seconds();
    wall.push_back(count / seconds_of([&] {
                     for (int i = 0; i < count; ++i)
                       simulate_plan(make_plan(load_questions(document).front()), Keep::Nothing);
                   }));
    processor.push_back(count / (processor_seconds() - before));
  }
  std::printf("%8s %6d %12.0f %12.0f\n", engine, steps, median(processor), median(wall));
  std::fflush(stdout);
}

/// 100,000 rows, all with the figures of one scenario and a step time of their own.
void time_database() {
  constexpr std::size_t kRows = 100'000;
  const auto folder =
      std::filesystem::temp_directory_path() / ("interlock-bench-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const std::string file = folder / "rows.db";
  JsonValue document = pipeline("native", 1);
  set_json(document, "sweep",
           parse_json(R"({"simulate.seed": {"from": 1, "to": 1000},
                          "training.steps": {"from": 1, "to": 100}})",
                      "bench"),
           "bench");
  Diagnostics diagnostics;
  const SweepPlan plan(document, kMostInTurn, diagnostics);
  SweepRow row = run_sweep_row(plan, 1, {"bench.json", {}});
  const std::size_t step_time = place_of(sweep_columns(plan.paths()), "step_time_s");
  const double write = seconds_of([&] {
    SweepStore store(file, identity_of(document, plan));
    for (std::size_t id = 1; id <= kRows; ++id) {
      row.id = id;
      row.cells[step_time] = static_cast<double>(id * 7919 % kRows);
      store.add(row);
    }
  });
  Ranking best;
  const double ranking =
      seconds_of([&] { best = rank_rows(file, {.by = "step_time_s", .top = 10}); });
  std::printf(
      "%zu rows, each a commit of its own, with details of %zu bytes: %.1f s to write, %.2f s to "
      "open and rank, %.0f MB\n",
      kRows, row.details.size(), write, ranking,
      static_cast<double>(std::filesystem::file_size(file)) / 1e6);
  CHECK(best.rows.size() == 10, "ten rows");
  std::filesystem::remove_all(folder);
}

/// The usual plans of GPT-3 175B on 64 devices, 512 samples a step.
void time_search() {
  const JsonValue document = parse_json(R"({"model": "gpt3-175b",
    "cluster": {"machine": "dgx-a100-80g", "nodes": 8},
    "parallel": {"sequence_parallel": true},
    "training": {"strategy": "global", "framework": "megatron-lm", "global_batch_size": 512,
                 "optimizer": "adam"}})",
                                        "bench");
  const int processes = usable_processors();
  SearchResult result;
  const double seconds = seconds_of([&] { result = search_plans(document, processes); });
  const SearchCounts& counts = result.counts;
  std::printf(
      "search, 175B on 64 devices: %zu plans, %zu looks, %zu judgements, %zu worth having: %.1f s "
      "by %d processes\n",
      counts.plans, counts.looked_at, counts.judged,
      static_cast<std::size_t>(
          std::count_if(result.plans.begin(), result.plans.end(),
                        [](const FoundPlan& plan) { return plan.worth_having; })),
      seconds, processes);
}

}  // namespace

void run_planning(int rounds) {
  std::printf(
      "Scenarios of 8 stages and 32 micro-batches, document to figures, median of %d rounds\n"
      "  engine  steps  a second of   a second of\n"
      "                   processor          time\n",
      rounds);
  time_engine("native", 1, rounds);
  time_engine("native", 8, rounds);
  time_engine("simgrid", 1, rounds);
  time_database();
  time_search();
}

}  // namespace interlock
