// The N that "auto" chooses for each loss, against every list of N, each simulated.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/random.h"
#include "scenarios/load/question.h"
#include "scenarios/plan/step_time.h"
#include "tests/support/cases.h"

namespace interlock::reach_search_test {
namespace {

using Json = nlohmann::ordered_json;
using Counts = std::vector<int>;

std::string in(int number, const char* unit) { return std::to_string(number) + " " + unit; }

/// Draws modules of unequal times and sizes; heads of little or much work and memory.
Json random_model(int modules, Random& random) {
  Json all = Json::array();
  const int heads = random.integer(0, 1) == 0 ? 400 : 4000;
  for (int i = 0; i < modules; ++i) {
    all.push_back({{"forward", in(random.integer(500, 3000), "us")},
                   {"backward_input", in(random.integer(500, 3000), "us")},
                   {"backward_weight", in(random.integer(300, 2500), "us")},
                   {"head", in(random.integer(heads / 4, heads), "us")},
                   {"update", in(random.integer(50, 300), "us")},
                   {"output", in(random.integer(1, 40), "MiB")},
                   {"stash", in(random.integer(20, 400), "MiB")},
                   {"parameters", in(random.integer(10, 200), "MiB")}});
  }
  return {{"kind", "profile"}, {"modules", all}};
}

/// The parts of a scenario that are the same whatever N is.
struct Setting {
  int stages = 4, modules = 6, least = 1;
  double slowdown = 0;
  Json schedule = "eager";
};

Json scenario_of(const Setting& setting, Random& random) {
  return {{"name", "N of each loss"},
          {"model", random_model(setting.modules, random)},
          {"cluster",
           {{"kind", "uniform"},
            {"devices", setting.stages},
            {"memory", "100 GiB"},
            {"link", {{"latency", "10 us"}, {"bandwidth", in(random.integer(5, 100), "GB/s")}}}}},
          {"parallel", {{"pipeline", setting.stages}}},
          {"training",
           {{"strategy", {{"kind", "interlocking"}, {"heads", "minimal"}}},
            {"schedule", setting.schedule},
            {"micro_batches", random.integer(1, 3)},
            {"steps", 4}}}};
}

/// Returns how many stages lie between each stage and the furthest loss that reaches it, added up.
int distance_of(const Counts& n) {
  int sum = 0;
  for (int stage = 0; stage < static_cast<int>(n.size()); ++stage) {
    int furthest = stage;
    for (int loss = stage; loss < static_cast<int>(n.size()); ++loss) {
      if (loss - n[loss] + 1 <= stage) furthest = loss;
    }
    sum += furthest - stage;
  }
  return sum;
}

struct Run {
  Counts n;
  int distance = 0;
  double time = 0, peak = 0;
};

Run simulated(const Json& scenario) {
  const Plan plan = make_plan(load_questions(parse_json(scenario.dump(), "reach.json")).front());
  const StepEstimate step = estimate_step(plan, Grade::Simulation);
  const Strategy& strategy = plan.question.training().strategy;
  Counts n = strategy.n_of_losses;
  if (n.empty()) n.assign(plan.partition.stages(), strategy.n_wise);
  return {n, distance_of(n), step.time.value(), step.memory.value()};
}

/// Calls `visit` with every list of 1 to i + 1 for loss i, none less than there need be.
void for_lists(int stages, int least, const std::function<void(const Counts&)>& visit) {
  Counts n(stages);
  const auto fewest = [&](int loss) { return std::min(least, loss + 1); };
  for (int i = 0; i < stages; ++i) n[i] = fewest(i);
  for (int i = 0; i < stages;) {
    visit(n);
    for (i = 0; i < stages && n[i] == i + 1; ++i) n[i] = fewest(i);
    if (i < stages) ++n[i];
  }
}

/// Returns every way to cut `modules` into `stages` parts.
std::vector<Json> all_cuts(int modules, int stages) {
  std::vector<Json> all;
  std::vector<int> cut;
  const std::function<void(int)> add = [&](int left) {
    const int parts = stages - static_cast<int>(cut.size());
    if (parts == 1) {
      all.emplace_back(cut);
      all.back().push_back(left);
      return;
    }
    for (int count = 1; count <= left - parts + 1; ++count) {
      cut.push_back(count);
      add(left - count);
      cut.pop_back();
    }
  };
  add(modules);
  return all;
}

std::vector<Run> simulate_all(const Setting& setting, Json scenario, const std::vector<Json>& cuts,
                              const std::vector<Json>& schedules) {
  std::vector<Run> all;
  for (const Json& cut : cuts) {
    scenario["partition"] = cut;
    for (const Json& schedule : schedules) {
      scenario["training"]["schedule"] = schedule;
      for_lists(setting.stages, setting.least, [&](const Counts& n) {
        scenario["training"]["strategy"]["n_wise"] = n;
        all.push_back(simulated(scenario));
      });
    }
  }
  return all;
}

/// Returns a capacity that a share of `all` fits into.
double memory_for(const std::vector<Run>& all, double share) {
  std::vector<double> peaks;
  for (const Run& run : all) peaks.push_back(run.peak);
  std::sort(peaks.begin(), peaks.end());
  return std::ceil(peaks[static_cast<std::size_t>(share * (peaks.size() - 1.0))]) + 1;
}

double shortest_of(const std::vector<Run>& all, double memory) {
  double shortest = kInfinity;
  for (const Run& run : all) {
    if (run.peak <= memory) shortest = std::min(shortest, run.time);
  }
  return shortest;
}

/// Returns the run of greatest distance, and of these the shortest, that fits and takes at most
/// `longest`.
Run furthest_of(const std::vector<Run>& all, double memory, double longest) {
  Run best = {.distance = -1};
  for (const Run& run : all) {
    if (run.peak > memory || run.time > longest * (1 + 1e-9)) continue;
    const bool further = run.distance > best.distance;
    if (further || (run.distance == best.distance && run.time < best.time)) best = run;
  }
  return best;
}

Run chosen(const Setting& setting, Json scenario, double memory) {
  scenario["cluster"]["memory"] = std::to_string(static_cast<std::int64_t>(memory)) + " B";
  Json& strategy = scenario["training"]["strategy"];
  strategy["n_wise"] = "auto";
  strategy["least_n"] = setting.least;
  strategy["slowdown"] = setting.slowdown;
  return simulated(scenario);
}

bool is_uniform(const Counts& n) {
  for (std::size_t i = 0; i < n.size(); ++i) {
    if (std::min<int>(n[i], i + 1) != std::min<int>(n.back(), i + 1)) return false;
  }
  return true;
}

TEST_CASE("the N that auto chooses are the best of all lists of N, under room and slowdown") {
  const std::vector<Json> schedules = {"eager",
                                       {{"kind", "eager"}, {"backward", "fused"}},
                                       {{"kind", "eager"}, {"in_flight", 2}},
                                       "list"};
  int own = 0, held_back = 0;
  const int trials = cases(60);
  for (int trial = 0; trial < trials; ++trial) {
    Random random(static_cast<std::uint64_t>(trial), 51);
    Setting setting{.stages = random.integer(2, 5), .least = random.integer(1, 2)};
    setting.modules = setting.stages + random.integer(0, 3);
    setting.slowdown = random.integer(0, 4) * 0.2;
    setting.schedule = schedules[random.integer(0, 3)];
    const Json scenario = scenario_of(setting, random);
    const std::vector<Run> all = simulate_all(setting, scenario, {"balanced"}, {setting.schedule});
    const double memory = memory_for(all, random.integer(1, 4) * 0.25);
    const double longest = shortest_of(all, memory) * (1 + setting.slowdown);
    const Run expected = furthest_of(all, memory, longest);
    const Run found = chosen(setting, scenario, memory);
    CAPTURE(trial);
    CAPTURE(scenario.dump());
    CHECK(found.peak <= memory);
    CHECK(found.distance == expected.distance);
    CHECK(found.time == doctest::Approx(expected.time).epsilon(1e-9));
    own += is_uniform(found.n) ? 0 : 1;
    const double any = shortest_of(all, kInfinity) * (1 + setting.slowdown);
    held_back += furthest_of(all, kInfinity, any).distance == expected.distance ? 0 : 1;
  }
  std::printf("N of each loss: %d of %d lists have several N, %d are held back by memory\n", own,
              trials, held_back);
  CHECK(own > trials / 4);
  CHECK(held_back > trials / 20);
}

TEST_CASE("N, boundaries and order that auto chooses together are the best of all, or next to it") {
  int best = 0, other_cuts = 0;
  const int trials = cases(8);
  for (int trial = 0; trial < trials; ++trial) {
    Random random(static_cast<std::uint64_t>(trial), 52);
    const Setting setting{.stages = 3 + trial % 2,
                          .modules = 6 + trial % 2,
                          .slowdown = random.integer(0, 2) * 0.25,
                          .schedule = {{"kind", "auto"}, {"evaluations", 1}}};
    Json scenario = scenario_of(setting, random);
    const std::vector<Run> all =
        simulate_all(setting, scenario, all_cuts(setting.modules, setting.stages),
                     {"eager", {{"kind", "eager"}, {"backward", "fused"}}});
    const double memory = memory_for(all, 0.33);
    const double shortest = shortest_of(all, memory);
    scenario["partition"] = "auto";
    const Run found = chosen(setting, scenario, memory);
    CAPTURE(trial);
    CHECK(found.peak <= memory);
    // The search behind boundaries may miss the best cut by little, and orders of its own may be
    // shorter than all that are listed: so may then be the longest step that is let through.
    CHECK(found.time <= shortest * (1 + setting.slowdown) * 1.01);
    const Run least = furthest_of(all, memory, shortest * (1 + 0.95 * setting.slowdown) / 1.01);
    CHECK(found.distance >= least.distance);
    const Run expected = furthest_of(all, memory, shortest * (1 + setting.slowdown));
    best += found.distance == expected.distance ? 1 : 0;
    scenario["partition"] = "balanced";
    const std::vector<Run> balanced = simulate_all(setting, scenario, {"balanced"}, {"eager"});
    const double shortest_balanced = shortest_of(balanced, memory);
    other_cuts += found.time < shortest_balanced * (1 - 1e-9) ? 1 : 0;
  }
  std::printf("N, boundaries and order: %d of %d are the best of all, %d shorter than balanced\n",
              best, trials, other_cuts);
  CHECK(best >= trials * 3 / 4);
  CHECK(other_cuts > 0);
}

/// Returns the lists of least N for all furthest losses of stages: one for each training.
std::vector<Counts> all_trainings(int stages) {
  std::vector<Counts> all;
  std::vector<int> losses;
  const std::function<void()> add = [&] {
    const int stage = static_cast<int>(losses.size());
    if (stage == stages) {
      Counts n(stages, 1);
      for (int i = stages - 1; i >= 0; --i) n[losses[i]] = losses[i] - i + 1;
      all.push_back(n);
      return;
    }
    const int least = std::max(stage, losses.empty() ? 0 : losses.back());
    for (int loss = stage + 1 == stages ? stage : least; loss < stages; ++loss) {
      losses.push_back(loss);
      add();
      losses.pop_back();
    }
  };
  add();
  return all;
}

/// Compares what a search that judges only some trainings chooses with the best of all.
struct Descent {
  int trials = 0, best = 0, distance = 0, best_distance = 0;

  void compare(const Setting& setting, const std::vector<Json>& schedules, Random& random) {
    Json scenario = scenario_of(setting, random);
    scenario["partition"] = "uniform";  // one cut for all schedules
    std::vector<Run> all;
    for (const Json& schedule : schedules) {
      scenario["training"]["schedule"] = schedule;
      for (const Counts& n : all_trainings(setting.stages)) {
        scenario["training"]["strategy"]["n_wise"] = n;
        all.push_back(simulated(scenario));
      }
    }
    scenario["training"]["schedule"] = setting.schedule;
    const double memory = memory_for(all, trials % 2 == 0 ? 1 : 0.3);
    // Orders of the search's own may be shorter than all that are listed: so may then be the
    // longest step that is let through.
    Setting at_once = setting;
    at_once.slowdown = 0;
    const double own = chosen(at_once, scenario, memory).time;
    const double shortest = std::min(shortest_of(all, memory), own);
    const Run expected = furthest_of(all, memory, shortest * (1 + setting.slowdown));
    const Run found = chosen(setting, scenario, memory);
    CAPTURE(trials);
    CHECK(own <= shortest_of(all, memory) * 1.1);
    CHECK(found.peak <= memory);
    CHECK(found.time <= shortest * (1 + setting.slowdown) * 1.1);
    distance += found.distance;
    best_distance += expected.distance;
    best += found.distance >= expected.distance ? 1 : 0;
    ++trials;
  }

  void tell(const char* what) const {
    std::printf("%s: stages to losses %d, at best %d; %d of %d are the best\n", what, distance,
                best_distance, best, trials);
    CHECK(distance >= 0.85 * best_distance);
    CHECK(best >= trials / 2);
  }
};

TEST_CASE("of more trainings than are judged, auto chooses one that is hardly behind the best") {
  CHECK(all_trainings(8).size() == 1430);  // Catalan's number of eight
  Descent fixed, searched;
  const int trials = cases(2);
  for (int trial = 0; trial < trials; ++trial) {
    Random random(static_cast<std::uint64_t>(trial), 53);
    fixed.compare({.stages = 9, .modules = 11, .slowdown = 0.25 * (1 + trial % 4)}, {"eager"},
                  random);
  }
  fixed.tell("nine stages");
  for (int trial = 0; trial < 3 * trials; ++trial) {
    Random random(static_cast<std::uint64_t>(trial), 55);
    searched.compare({.stages = 6,
                      .modules = 8,
                      .slowdown = 0.25 * (1 + trial % 4),
                      .schedule = {{"kind", "auto"}, {"evaluations", 1}}},
                     {"eager", {{"kind", "eager"}, {"backward", "fused"}}}, random);
  }
  searched.tell("six stages, orders searched");
}

TEST_CASE("where no N fits, auto says what the leanest takes") {
  Random random(1, 54);
  const Setting setting{.stages = 3};
  const Json scenario = scenario_of(setting, random);
  CHECK_THROWS_WITH_AS(
      chosen(setting, scenario, 1000),
      doctest::Contains("/training/strategy/n_wise: no N for the losses was found whose step fits"),
      Error);
}

}  // namespace
}  // namespace interlock::reach_search_test
