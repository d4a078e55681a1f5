// Cuts, placements and schedules that are chosen together, against all of them.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/random.h"
#include "scenarios/load/question.h"
#include "scenarios/plan/step_time.h"
#include "tests/support/cases.h"

namespace interlock::cut_search_test {
namespace {

using Json = nlohmann::ordered_json;
using Counts = std::vector<int>;

/// The things that a search may choose; the rest is as the scenario says.
struct Freedom {
  const char* name;
  Json strategy, schedule;
  int ranks = 2, stages = 4, modules = 7;
  bool lays = true;
};

struct Found {
  double time = 0, peak = 0;
};

std::string in(int number, const char* unit) { return std::to_string(number) + " " + unit; }

/// Draws modules of which some take several times as long as others, or keep several times as much.
Json unequal_model(const Freedom& freedom, Random& random) {
  Json modules = Json::array();
  const int heavy = random.integer(0, freedom.modules - 1);
  for (int i = 0; i < freedom.modules; ++i) {
    const int scale = i == heavy ? 4 : 1;
    modules.push_back({{"forward", in(scale * random.integer(500, 3000), "us")},
                       {"backward_input", in(scale * random.integer(500, 3000), "us")},
                       {"backward_weight", in(scale * random.integer(300, 2500), "us")},
                       {"head", in(random.integer(200, 4000), "us")},
                       {"update", in(random.integer(50, 300), "us")},
                       {"output", in(random.integer(1, 40), "MiB")},
                       {"stash", in(random.integer(20, 400), "MiB")},
                       {"parameters", in(random.integer(10, 200), "MiB")}});
  }
  return {{"kind", "profile"}, {"modules", modules}};
}

Json scenario_of(const Freedom& freedom, Random& random) {
  const std::string bandwidth = in(random.integer(5, 100), "GB/s");
  return {{"name", freedom.name},
          {"model", unequal_model(freedom, random)},
          {"cluster",
           {{"kind", "uniform"},
            {"devices", freedom.ranks},
            {"memory", "100 GiB"},
            {"link", {{"latency", "10 us"}, {"bandwidth", bandwidth}}}}},
          {"parallel", {{"pipeline", freedom.ranks}, {"stages", freedom.stages}}},
          {"training",
           {{"strategy", freedom.strategy},
            {"schedule", freedom.schedule},
            {"micro_batches", 2 * random.integer(2, 3)},
            {"steps", 4}}}};
}

/// Returns every list of `length` numbers from `least` to `most`.
std::vector<Counts> lists(int length, int least, int most) {
  std::vector<Counts> all = {{}};
  for (int i = 0; i < length; ++i) {
    std::vector<Counts> longer;
    for (const Counts& one : all) {
      for (int number = least; number <= most; ++number) {
        longer.push_back(one);
        longer.back().push_back(number);
      }
    }
    all = longer;
  }
  return all;
}

std::vector<Counts> all_cuts(const Freedom& freedom) {
  std::vector<Counts> all = lists(freedom.stages, 1, freedom.modules - freedom.stages + 1);
  std::erase_if(all, [&](const Counts& cut) {
    int sum = 0;
    for (const int modules : cut) sum += modules;
    return sum != freedom.modules;
  });
  return all;
}

/// Returns every way to lay stages on ranks of which none is idle.
std::vector<Json> all_placements(const Freedom& freedom) {
  if (!freedom.lays) return {nullptr};
  std::vector<Json> all;
  for (const Counts& ranks : lists(freedom.stages, 0, freedom.ranks - 1)) {
    bool busy = true;
    for (int rank = 0; rank < freedom.ranks; ++rank) {
      busy = busy && std::count(ranks.begin(), ranks.end(), rank) > 0;
    }
    if (busy) all.push_back(ranks);
  }
  return all;
}

/// Returns the schedules that compete: all that flush a step of global training.
std::vector<Json> all_schedules(const Freedom& freedom) {
  if (freedom.schedule.is_null() || freedom.schedule == "eager") {
    return {{{"kind", "eager"}, {"backward", "split"}}, {{"kind", "eager"}, {"backward", "fused"}}};
  }
  if (freedom.schedule.is_string()) return {freedom.schedule};
  std::vector<Json> all;
  for (const char* kind : {"naive", "naive-split", "gpipe", "1f1b", "eager-1f1b", "interleaved",
                           "zb-h1", "zb-h2", "zb-v", "v-half", "breadth-first", "hanayo"}) {
    for (const char* backward : {"fused", "split"}) {
      all.push_back({{"kind", kind}, {"backward", backward}});
    }
  }
  return all;
}

std::optional<Found> simulated(const Json& scenario) {
  try {
    const Plan plan = make_plan(load_questions(parse_json(scenario.dump(), "cut.json")).front());
    const StepEstimate step = estimate_step(plan, Grade::Simulation);
    return Found{step.time.value(), step.memory.value()};
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<Found> simulate_all(const Freedom& freedom, Json scenario) {
  std::vector<Found> all;
  for (const Json& schedule : all_schedules(freedom)) {
    scenario["training"]["schedule"] = schedule;
    for (const Json& placement : all_placements(freedom)) {
      if (!placement.is_null()) scenario["parallel"]["placement"] = placement;
      for (const Counts& cut : all_cuts(freedom)) {
        scenario["partition"] = cut;
        if (const auto found = simulated(scenario)) all.push_back(*found);
      }
    }
  }
  return all;
}

Json searched(const Freedom& freedom, Json scenario, double memory) {
  scenario["partition"] = "auto";
  if (freedom.lays) scenario["parallel"]["placement"] = "auto";
  if (scenario["training"]["schedule"] == "eager") {
    scenario["training"]["schedule"] = {{"kind", "auto"}, {"evaluations", 1}};
  }
  scenario["cluster"]["memory"] = std::to_string(static_cast<std::int64_t>(memory)) + " B";
  return scenario;
}

const Json kAuto = {{"kind", "auto"}, {"evaluations", 1}};  // few orders of its own

/// Global training, local and N-wise; by one schedule and by all.
std::vector<Freedom> freedoms() {
  const Json local = "local", global = "global";
  const auto wise = [](int n) { return Json{{"kind", "interlocking"}, {"n_wise", n}}; };
  return {{"1f1b", global, "1f1b", 3, 3, 8, false},
          {"gpipe", global, "gpipe", 2, 4, 7},
          {"zb-h1", global, "zb-h1", 2, 2, 9, false},
          {"interleaved", global, "interleaved", 2, 4, 9, false},
          {"any schedule", global, kAuto, 2, 4, 6},
          {"any schedule", global, kAuto, 3, 3, 7},
          {"local", local, "eager", 2, 4, 7},
          {"local", local, "eager", 3, 4, 6},
          {"pairwise", wise(2), "eager", 2, 4, 7},
          {"3-wise", wise(3), "eager", 2, 4, 7},
          {"local, three ranks", local, "eager", 3, 3, 8, false},
          {"pairwise, three ranks", wise(2), "eager", 3, 3, 8, false}};
}

struct Tally {
  int models = 0, optimal = 0;
  std::size_t choices = 0;
  double worst = 1, over_balanced = 0;
};

/// Compares the search with all choices, where a third of these fit.
void compare(const Freedom& freedom, int seed, Tally& tally) {
  Random random(static_cast<std::uint64_t>(seed), 24);
  const Json scenario = scenario_of(freedom, random);
  const std::vector<Found> all = simulate_all(freedom, scenario);
  REQUIRE(!all.empty());
  std::vector<double> peaks;
  for (const Found& one : all) peaks.push_back(one.peak);
  std::sort(peaks.begin(), peaks.end());
  const double memory = std::ceil(peaks[peaks.size() / 3]) + 1;
  double best = kInfinity;
  for (const Found& one : all) {
    if (one.peak <= memory) best = std::min(best, one.time);
  }
  const std::optional<Found> found = simulated(searched(freedom, scenario, memory));
  CAPTURE(freedom.name);
  CAPTURE(seed);
  REQUIRE(found.has_value());
  CHECK(found->peak <= memory);
  const double over = found->time / best;
  CHECK(over <= 1.01);
  const bool finds_orders = freedom.schedule == kAuto || freedom.schedule == "eager";
  if (!finds_orders) CHECK(over >= 1 - 1e-9);  // no choice is better than the best of all
  ++tally.models;
  tally.choices += all.size();
  tally.worst = std::max(tally.worst, over);
  if (over <= 1 + 1e-9) ++tally.optimal;
}

TEST_CASE("a cut that is searched with ranks and schedule is as good as the best of all") {
  Tally tally;
  const int rounds = cases(2);
  for (int round = 0; round < rounds; ++round) {
    int number = 0;
    for (const Freedom& freedom : freedoms()) compare(freedom, 100 * round + number++, tally);
  }
  std::printf("%d unequal models, %zu choices: the best of %d found; at most %.3f %% over it\n",
              tally.models, tally.choices, tally.optimal, 100 * (tally.worst - 1));
  CHECK(tally.optimal >= tally.models * 9 / 10);
}

}  // namespace
}  // namespace interlock::cut_search_test
