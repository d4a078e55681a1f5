// Scenarios of 8 stages and 32 micro-batches, from document to figures; rows written and ranked.
// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/planning_bench.h"

#include <sys/resource.h>
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
#include "scenarios/starter/sizing.h"
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

struct Pipeline {
  std::string engine = "native";
  int steps = 1;
  bool shared = false;  // two devices of each node share a card
};

JsonValue document_of(const Pipeline& pipeline) {
  const char* own = R"({"kind": "uniform", "devices": 8, "memory": "80 GiB",
                        "link": {"bandwidth": "10 GB/s"}})";
  const char* shared = R"({"kind": "machine", "device": "a100-80g", "devices_per_node": 2,
      "nodes": 4, "port": {"latency": "0 s", "bandwidth": "300 GB/s"},
      "cards": {"latency": "0 s", "bandwidth": "10 GB/s", "per_node": 1}})";
  return parse_json(R"({"model": {"kind": "profile", "modules": [{"repeat": 8, "forward": "1 ms",
      "backward_input": "1 ms", "backward_weight": "1 ms", "output": "1 MB", "stash": "4 MB"}]},
    "cluster": )" + std::string(pipeline.shared ? shared : own) +
                        R"(, "training": {"strategy": "global", "micro_batches": 32, "steps": )" +
                        std::to_string(pipeline.steps) + R"(}, "simulate": {"engine": ")" +
                        pipeline.engine + R"("}})",
                    "bench");
}

/// Times rounds of each in turn, so that what else the machine does slows all of them.
void time_engines(const std::vector<Pipeline>& pipelines, int rounds) {
  std::vector<std::vector<double>> processor(pipelines.size()), wall(pipelines.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < pipelines.size(); ++i) {
      const JsonValue document = document_of(pipelines[i]);
      const int count = pipelines[i].engine == "native" ? 400 : 40;
      const double before = processor_seconds();
      wall[i].push_back(count / seconds_of([&] {
                          for (int run = 0; run < count; ++run) {
                            simulate_plan(make_plan(load_questions(document).front()),
                                          Keep::Nothing);
                          }
                        }));
      processor[i].push_back(count / (processor_seconds() - before));
    }
  }
  for (std::size_t i = 0; i < pipelines.size(); ++i) {
    std::vector<double> ratios;  // to the first, round by round
    ratios.reserve(static_cast<std::size_t>(rounds));
    for (int round = 0; round < rounds; ++round) ratios.push_back(wall[i][round] / wall[0][round]);
    std::printf("%8s %-7s %6d %12.0f %12.0f %9.2f\n", pipelines[i].engine.c_str(),
                pipelines[i].shared ? "shared" : "own", pipelines[i].steps, median(processor[i]),
                median(wall[i]), median(ratios));
  }
  std::fflush(stdout);
}

/// 100,000 rows, all with the figures of one scenario and a step time of their own.
void time_database() {
  constexpr std::size_t kRows = 100'000;
  const auto folder =
      std::filesystem::temp_directory_path() / ("interlock-bench-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const std::string file = folder / "rows.db";
  JsonValue document = document_of({});
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

/// Seconds of this process and of the workers that it waited for.
double seconds_of_all() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    ::getrusage(who, &used);
    for (const timeval& time : {used.ru_utime, used.ru_stime}) {
      seconds += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    }
  }
  return seconds;
}

/// Returns the mean time of loading and simulating a plan, of those that were found.
double simulation_seconds(const std::vector<FoundPlan>& plans) {
  constexpr std::size_t kMost = 2;
  const std::size_t count = std::min(kMost, plans.size());
  const double before = seconds_of_all();
  for (std::size_t i = 0; i < count; ++i) {
    Question question = load_questions(plans[i].document).front();
    question.simulation.engine = EngineKind::Native;
    const Seconds time = estimate_step(make_plan(question), Grade::Simulation).time;
    CHECK(time > Seconds(0), "a plan that was found runs");
  }
  return (seconds_of_all() - before) / static_cast<double>(count);
}

/// The ratio that no other program on the machine changes much: how many simulations of plans that
/// were found take as long as finding them.
void print_search(const char* name, const SearchCounts& counts, double wall, double processor,
                  double simulation) {
  const double simulations = processor / simulation;
  std::printf(
      "%s: %zu plans, %zu bounds, %zu looks, %zu judgements: %.1f s, %.1f of processor, as long as "
      "%.0f simulations of the plans that it found; %.0f plans decided in the time of one\n",
      name, counts.plans, counts.bounded_layouts + counts.bounded, counts.looked_at, counts.judged,
      wall, processor, simulations, static_cast<double>(counts.plans) / simulations);
  std::fflush(stdout);
}

/// The usual plans of GPT-3 175B on 64 devices, 512 samples a step.
void time_search() {
  const JsonValue document = parse_json(R"({"model": "gpt3-175b",
    "cluster": {"machine": "dgx-a100-80g", "nodes": 8},
    "parallel": {"sequence_parallel": true},
    "training": {"strategy": "global", "framework": "megatron-lm", "global_batch_size": 512,
                 "optimizer": "adam"}})",
                                        "bench");
  SearchResult result;
  const double before = seconds_of_all();
  const double wall = seconds_of([&] { result = search_plans(document, usable_processors()); });
  const double processor = seconds_of_all() - before;
  print_search("search, 175B on 64 devices", result.counts, wall, processor,
               simulation_seconds(result.plans));
}

/// The row of a mixture of experts, on as many devices as it takes.
void time_plan() {
  const SizingQuestion question = {
      .model = "mixtral-8x7b", .machines = {{"dgx-h100", ""}}, .devices = {128}, .length = 1e12};
  Sizing sizing;
  const double before = seconds_of_all();
  const double wall = seconds_of([&] { sizing = size_up(question, usable_processors()); });
  const double processor = seconds_of_all() - before;
  CHECK(sizing.rows.size() == 1 && sizing.rows.front().fits, "a row with a plan");
  const double simulation = simulation_seconds({*sizing.rows.front().plan});
  std::printf(
      "plan, Mixtral 8x7B on 128 H100: %.1f s, %.1f of processor, as long as %.0f simulations of "
      "its plan\n",
      wall, processor, processor / simulation);
}

}  // namespace

void run_planning(int rounds) {
  std::printf(
      "Scenarios of 8 stages and 32 micro-batches, document to figures, median of %d rounds\n"
      "  engine links    steps  a second of  a second of  first = 1\n"
      "                           processor         time\n",
      rounds);
  time_engines({{"native", 1, false},
                {"native", 8, false},
                {"native", 1, true},
                {"native", 8, true},
                {"simgrid", 1, false},
                {"simgrid", 1, true}},
               rounds);
  time_database();
  time_search();
  time_plan();
}

}  // namespace interlock
