// A search finds what simulating every plan finds.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/error.h"
#include "scenarios/plan/step_time.h"
#include "scenarios/search/plan_search.h"
#include "scenarios/simulate/economics.h"
#include "scenarios/simulate/run_scenario.h"
#include "tests/search/random_space.h"
#include "tests/support/cases.h"

namespace interlock::search_optimum_test {
namespace {

/// Time, memory, cost, energy.
using Values = std::array<double, 4>;

/// Returns the values of every plan that loads and fits, the fastest first.
std::vector<Values> simulate_all(const std::string& space) {
  std::vector<Values> all;
  for (const JsonValue& plan : all_plans(space)) {
    std::vector<Question> scenarios;
    try {
      scenarios = load_questions(plan);
    } catch (const Error&) {
      continue;
    }
    const Plan own = make_plan(scenarios.front());
    const Metrics metrics = estimate_step(own, Grade::Simulation).metrics;
    if (!metrics.fits_in_memory) continue;
    const Economics economics = economics_of(own, metrics);
    double peak = 0;
    for (const DeviceMetrics& device : metrics.devices) {
      peak = std::max(peak, device.peak_memory.value());
    }
    const double fullest = fullest_device(metrics).peak_memory.value();
    // The allocator keeps a tenth of what it hands out; nothing else is known of these devices.
    if (1.1 * fullest > metrics.memory_capacity->value()) continue;
    all.push_back({metrics.step_time.value(), peak, economics.cost ? economics.cost->amount : 0,
                   economics.energy ? economics.energy->value() : 0});
  }
  std::sort(all.begin(), all.end());
  return all;
}

/// Those that beat every one before them by `worth` in something.
std::vector<Values> worth_having(const std::vector<Values>& all, double worth) {
  std::vector<Values> kept;
  for (const Values& one : all) {
    const bool beaten = std::any_of(kept.begin(), kept.end(), [&](const Values& before) {
      for (std::size_t i = 0; i < one.size(); ++i) {
        if (before[i] > one[i] * (1 + worth)) return false;
      }
      return true;
    });
    if (!beaten) kept.push_back(one);
  }
  return kept;
}

/// Leaves one of those that are equal in everything: they are one plan by several settings, or as
/// good as each other.
std::vector<Values> distinct(const std::vector<Values>& all) {
  std::vector<Values> kept;
  for (const Values& one : all) {
    const bool known = std::any_of(kept.begin(), kept.end(), [&](const Values& other) {
      for (std::size_t i = 0; i < one.size(); ++i) {
        if (std::abs(one[i] - other[i]) > 1e-9 * one[i]) return false;
      }
      return true;
    });
    if (!known) kept.push_back(one);
  }
  return kept;
}

std::vector<Values> values_of(const std::vector<FoundPlan>& plans) {
  std::vector<Values> values;
  for (const FoundPlan& plan : plans) values.push_back(plan.estimate.values);
  return values;
}

void check_equal(const FoundPlan& found, const Values& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(found.estimate.values[i] == doctest::Approx(expected[i]).epsilon(1e-9));
  }
}

/// Returns `space` with the ways to offload that are tried where nothing fits without: states of
/// the optimiser, beside them half of the activations, and all.
std::string with_offload(const std::string& space) {
  const std::string key = "\"search\":{";
  std::string wider = space;
  wider.insert(wider.find(key) + key.size(),
               R"("offload":[{"optimizer":1},{"optimizer":1,"activations":0.5},
                             {"optimizer":1,"activations":1}],)");
  return wider;
}

TEST_CASE("on small spaces a search returns the optimum, and every plan worth having") {
  std::size_t plans = 0, judged = 0, front = 0, alike = 0, widened = 0;
  const int spaces = cases(6);
  for (int seed = 0; seed < spaces; ++seed) {
    CAPTURE(seed);
    const std::string space = random_space(1000 + seed, true);
    const JsonValue document = parse_json(space, "space.json");
    const SearchResult result = search_plans(document, 2);
    std::vector<Values> all = simulate_all(space);
    if (all.empty() && parse_json(space, "space.json").find("search")->find("offload") == nullptr) {
      ++widened;
      all = simulate_all(with_offload(space));
    }
    CHECK(result.plans.empty() == all.empty());
    const std::vector<Values> kept = worth_having(all, result.request.worth);
    std::vector<FoundPlan> worth;
    std::copy_if(result.plans.begin(), result.plans.end(), std::back_inserter(worth),
                 [](const FoundPlan& plan) { return plan.worth_having; });
    REQUIRE(worth.size() == kept.size());
    for (std::size_t i = 0; i < kept.size(); ++i) check_equal(worth[i], kept[i]);
    // And the next best are the next best.
    constexpr std::size_t kFirst = 6;
    std::vector<Values> first = values_of(result.plans);
    first.resize(std::min(kFirst, first.size()));
    const std::vector<Values> next = distinct(all), found = distinct(first);
    REQUIRE(found.size() <= next.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i][0] == doctest::Approx(next[i][0]).epsilon(1e-9));
    }
    for (const FoundPlan& plan : result.plans) alike += plan.alike.size();
    plans += result.counts.plans - result.counts.refused;
    judged += result.counts.judged;
    front += kept.size();
  }
  std::printf(
      "%d spaces: %zu of %zu plans are worth having; %zu were simulated as they are; %zu spaces "
      "with "
      "offload, as nothing fits without\n",
      spaces, front, plans, judged, widened);
  CHECK(alike > 0);
  CHECK(plans > 200);
  CHECK(judged < plans);
}

TEST_CASE(
    "what a search finds depends on no number of processes, and every plan is accounted for") {
  const JsonValue document = parse_json(random_space(3, true), "space.json");
  const SearchResult one = search_plans(document, 1), three = search_plans(document, 3);
  REQUIRE(one.plans.size() == three.plans.size());
  for (std::size_t i = 0; i < one.plans.size(); ++i) {
    CHECK(one.plans[i].estimate.values == three.plans[i].estimate.values);
    CHECK(one.plans[i].layout.micro_batch_size == three.plans[i].layout.micro_batch_size);
  }
  CHECK(one.counts.lost == three.counts.lost);
  std::size_t accounted = one.counts.refused + one.counts.unfinished + one.plans.size();
  for (const auto& grade : one.counts.lost) {
    for (const std::size_t lost : grade) accounted += lost;
  }
  CHECK(accounted == one.counts.plans);
}

/// Four devices, two streams on each of which hide the exchanges of tensor devices; `search` and
/// what is written of `parallel` and `training` end the document.
std::string four_devices(int bandwidth, const std::string& parallel, const std::string& training,
                         const std::string& search) {
  return R"({"model": {"kind": "transformer", "layers": 8, "hidden_size": 1024,
               "attention_heads": 8, "ffn_hidden_size": 2048, "vocab_size": 4096,
               "sequence_length": 256, "tied_embeddings": false},
             "cluster": {"kind": "machine", "devices_per_node": 4, "nodes": 1,
               "device": {"memory": "8 GB", "memory_bandwidth": "400 GB/s",
                          "launch_overhead": "2 us",
                          "peak": {"fp32": "10 TFLOP/s", "bf16": "80 TFLOP/s"},
                          "efficiency": {"gemm": {"compute": 0.7, "memory": 0.8}}},
               "port": {"latency": "2 us", "bandwidth": ")" +
         std::to_string(bandwidth) + R"( GB/s"}}, "parallel": {"sequence_parallel": true)" +
         parallel +
         R"(}, "training": {"strategy": "local", "global_batch_size": 16, "optimizer": "adam",
                            "precision": "bf16", "steps": 2)" +
         training + "}" + search + "}";
}

TEST_CASE("an order of several streams is found, though its exchanges in turn would lose") {
  // The bound of a layout is that of its first order, which has one stream.
  const std::vector<std::string> orders = {R"({"kind": "eager"})",
                                           R"({"kind": "eager", "in_flight": 2})"};
  int hidden = 0;
  for (const int bandwidth : {5, 10, 20, 40}) {
    CAPTURE(bandwidth);
    double least = kInfinity;
    std::optional<Question> best;
    for (const int pipeline : {1, 2, 4}) {
      for (const int tensor : {1, 2, 4}) {
        if (4 % (pipeline * tensor) != 0) continue;
        for (const std::string& order : orders) {
          const auto text = [](int number) { return std::to_string(number); };
          const std::string plan = four_devices(
              bandwidth,
              R"(, "pipeline": )" + text(pipeline) + R"(, "tensor": )" + text(tensor) +
                  R"(, "data": )" + text(4 / pipeline / tensor),
              R"(, "micro_batch_size": 2, "recompute": "none", "schedule": )" + order, "");
          try {
            const Question question = load_questions(parse_json(plan, "plan.json")).front();
            const Metrics metrics = estimate_step(make_plan(question), Grade::Simulation).metrics;
            if (metrics.step_time.value() >= least) continue;
            least = metrics.step_time.value();
            best = question;
          } catch (const Error&) {
            continue;
          }
        }
      }
    }
    REQUIRE(best);
    // With a limit just above it: a bound that is too high would lose it, and all others are lost.
    const std::string space = four_devices(
        bandwidth, "", "",
        R"(, "search": {"pipeline": [1, 2, 4], "tensor": [1, 2, 4], "micro_batch_size": [2],
                        "zero_stage": [0], "recompute": ["none"], "limits": {"time": ")" +
            std::to_string(1001 * least) + R"( ms"}, "schedule": [)" + orders[0] + ", " +
            orders[1] + "]}");
    const SearchResult result = search_plans(parse_json(space, "space.json"), 1);
    REQUIRE(!result.plans.empty());
    CHECK(result.plans.front().estimate.values[0] == doctest::Approx(least).epsilon(1e-9));
    best->training().schedule.in_flight = 1;
    hidden += bound_layout(*best, {.streams = false}).time.value() > 1.01 * least;
  }
  CHECK(hidden > 0);
}

}  // namespace
}  // namespace interlock::search_optimum_test
