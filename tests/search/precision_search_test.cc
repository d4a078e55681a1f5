// A search among precisions finds what simulating every plan in each of them finds.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "reports/answers/search_report.h"
#include "scenarios/plan/step_time.h"
#include "scenarios/search/plan_search.h"
#include "tests/search/small_machine.h"

namespace interlock::precision_search_test {
namespace {

using Json = nlohmann::ordered_json;

/// A transformer on two devices, whose products are equally fast in both kinds of 16 bits.
Json space_of(const Json& precisions) {
  Json space;
  space["model"] = {{"kind", "transformer"},  {"layers", 4},
                    {"hidden_size", 1024},    {"attention_heads", 8},
                    {"vocab_size", 4096},     {"ffn_hidden_size", 4096},
                    {"sequence_length", 256}, {"tied_embeddings", false}};
  space["cluster"] = small_machine(2, "100 GB/s");
  space["cluster"]["device"]["peak"] = {{"fp32", "10 TFLOP/s"},
                                        {"fp16", "80 TFLOP/s"},
                                        {"bf16", "80 TFLOP/s"},
                                        {"fp8", "160 TFLOP/s"}};
  space["training"] = {
      {"strategy", "global"}, {"global_batch_size", 16}, {"optimizer", "adam"}, {"steps", 2}};
  space["search"] = {{"pipeline", {1, 2}},
                     {"tensor", 1},
                     {"zero_stage", 0},
                     {"context", 1},
                     {"worth", 0},
                     {"micro_batch_size", {1, 2, 4}},
                     {"schedule", "1f1b"},
                     {"recompute", {"none", "full"}},
                     {"partition", "balanced"}};
  if (!precisions.is_null()) space["search"]["precision"] = precisions;
  return space;
}

struct Simulated {
  double time = 0, memory = 0;
  std::string precision;
};

/// Returns every plan of `space` in each of `precisions` that its devices have rates for.
std::vector<Simulated> simulate_all(const Json& space, const std::vector<std::string>& precisions) {
  std::vector<Simulated> all;
  for (const std::string& precision : precisions) {
    for (const int pipeline : {1, 2}) {
      for (const int size : {1, 2, 4}) {
        for (const char* again : {"none", "full"}) {
          Json plan = space;
          plan.erase("search");
          plan["parallel"] = {{"pipeline", pipeline}, {"data", 2 / pipeline}};
          Json& training = plan["training"];
          training["precision"] = precision;
          training["micro_batch_size"] = size;
          training["recompute"] = again;
          training["schedule"] = "1f1b";
          const JsonValue document = parse_json(plan.dump(), "plan.json");
          try {
            const Metrics metrics =
                estimate_step(make_plan(load_questions(document).front()), Grade::Simulation)
                    .metrics;
            const double memory = fullest_device(metrics).peak_memory.value();
            all.push_back({metrics.step_time.value(), memory, precision});
          } catch (const Error&) {
            continue;
          }
        }
      }
    }
  }
  return all;
}

std::string precision_of(const FoundPlan& plan) {
  return plan.document.find("training")->find("precision")->text;
}

TEST_CASE("the best plan of several precisions is the best of all plans in each of them") {
  const std::vector<std::string> precisions = {"fp32", "bf16", "fp8", "fp4"};
  const Json space = space_of(precisions);
  std::vector<Simulated> all = simulate_all(space, precisions);
  CHECK(all.size() == 3 * 12);  // no rate in 4 bits
  std::sort(all.begin(), all.end(),
            [](const Simulated& a, const Simulated& b) { return a.time < b.time; });
  for (const char* aim : {"time", "memory"}) {
    CAPTURE(aim);
    Json asked = space;
    asked["search"]["minimize"] = aim;
    const SearchResult found = search_plans(parse_json(asked.dump(), "space.json"), 1);
    REQUIRE(!found.plans.empty());
    const bool time = aim == std::string("time");
    const auto less = [&](const Simulated& a, const Simulated& b) {
      return time ? a.time < b.time : a.memory < b.memory;
    };
    const Simulated& best = *std::min_element(all.begin(), all.end(), less);
    const FoundPlan& first = found.plans.front();
    const double own = time ? first.estimate.step_time : first.estimate.peak_memory;
    CHECK(own == doctest::Approx(time ? best.time : best.memory).epsilon(1e-9));
    CHECK(precision_of(first) == best.precision);
    CHECK(plan_words(first).find(", " + best.precision) != std::string::npos);
    CHECK(found.counts.refused == found.counts.plans / 4);
    for (const FoundPlan& plan : found.plans) {
      const bool simulated = std::any_of(all.begin(), all.end(), [&](const Simulated& one) {
        return one.precision == precision_of(plan) &&
               one.time == doctest::Approx(plan.estimate.step_time).epsilon(1e-9) &&
               one.memory == doctest::Approx(plan.estimate.peak_memory).epsilon(1e-9);
      });
      CHECK(simulated);
      CHECK(found_json(plan)["precision"] == precision_of(plan));
    }
  }
}

TEST_CASE("precisions that make one plan are one row, with the words of both") {
  const SearchResult both =
      search_plans(parse_json(space_of({"fp16", "bf16"}).dump(), "space.json"), 1);
  const SearchResult one = search_plans(parse_json(space_of("bf16").dump(), "space.json"), 1);
  REQUIRE(both.plans.size() == one.plans.size());
  for (std::size_t i = 0; i < one.plans.size(); ++i) {
    CHECK(both.plans[i].estimate.step_time == one.plans[i].estimate.step_time);
    CHECK(precision_words(both.plans[i]) == "bf16 or fp16");
    CHECK(precision_words(one.plans[i]) == "bf16");
  }
}

TEST_CASE("without a list of precisions plans have that of the scenario, and do not say it") {
  Json space = space_of(nullptr);
  space["training"]["precision"] = "fp16";
  const SearchResult found = search_plans(parse_json(space.dump(), "space.json"), 1);
  REQUIRE(!found.plans.empty());
  for (const FoundPlan& plan : found.plans) {
    CHECK(precision_of(plan) == "fp16");
    CHECK(precision_words(plan).empty());
    CHECK(found_json(plan)["precision"] == "fp16");
  }
}

}  // namespace
}  // namespace interlock::precision_search_test
