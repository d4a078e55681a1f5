// Ranks of several stages: how many, and how they are cut.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "scenarios/plan/step_time.h"
#include "scenarios/search/plan_search.h"
#include "tests/search/small_machine.h"

namespace interlock::best_cut_test {
namespace {

using Json = nlohmann::ordered_json;

/// Returns a small transformer with a large vocabulary on `devices` devices of a pipeline.
Json pipeline(int devices, const std::string& schedule) {
  return {{"model",
           {{"kind", "transformer"},
            {"layers", 14},
            {"hidden_size", 512},
            {"attention_heads", 8},
            {"ffn_hidden_size", 2048},
            {"vocab_size", 16384},
            {"sequence_length", 512}}},
          {"cluster", small_machine(devices, "300 GB/s")},
          {"parallel", Json::object()},
          {"training",
           {{"strategy", "global"}, {"global_batch_size", 8}, {"optimizer", "adam"}, {"steps", 2}}},
          {"search",
           {{"tensor", 1},
            {"pipeline", devices},
            {"micro_batch_size", 1},
            {"recompute", "none"},
            {"schedule", schedule},
            {"chunks", 2}}}};
}

SearchResult searched(const Json& scenario) {
  return search_plans(parse_json(scenario.dump(), "best-cut.json"), 1);
}

StepEstimate simulated(const JsonValue& document) {
  return estimate_step(make_plan(load_questions(document).front()), Grade::Simulation);
}

TEST_CASE("the best plan is cut anew where that is faster than every rule") {
  int faster = 0;
  for (const int layers : {14, 22, 30}) {
    for (const int chunks : {2, 3, 4}) {
      CAPTURE(layers);
      CAPTURE(chunks);
      Json scenario = pipeline(4, "interleaved");
      scenario["model"]["layers"] = layers;
      scenario["search"]["chunks"] = chunks;
      const SearchResult anew = searched(scenario);
      scenario["search"]["partition"] = {"balanced", "uniform"};
      const SearchResult by_rules = searched(scenario);
      CHECK(by_rules.counts.cut_anew == 0);
      CHECK(anew.counts.cut_anew == 1);
      const FoundPlan &first = anew.plans.front(), &rule = by_rules.plans.front();
      const double worth = 1 + anew.request.worth;
      const double time = first.estimate.step_time, before = rule.estimate.step_time;
      CHECK(rule.order.partition.kind == JsonValue::Kind::String);
      if (first.order.partition.kind == JsonValue::Kind::Array) {
        ++faster;
        CHECK(anew.plans.size() == by_rules.plans.size() + 1);
        CHECK(time * worth < before);
        CHECK(simulated(first.document).time.value() == doctest::Approx(time).epsilon(1e-9));
      } else {
        CHECK(time == before);
      }
    }
  }
  MESSAGE(faster << " of 9 plans are faster by another cut");
  CHECK(faster > 0);
}

TEST_CASE("each number of stages that a rank may have is searched, as its plan is simulated") {
  Json scenario = pipeline(2, "interleaved");
  scenario["search"]["chunks"] = {2, 3, 4};
  scenario["search"]["partition"] = "balanced";
  const SearchResult result = searched(scenario);
  CHECK(result.counts.plans == 3);
  CHECK(result.counts.refused == 0);
  std::set<int> chunks;
  for (const FoundPlan& plan : result.plans) {
    CAPTURE(plan.order.chunks);
    chunks.insert(plan.order.chunks);
    Json written = scenario;
    written.erase("search");
    written["parallel"] = {{"pipeline", 2}};
    written["training"]["micro_batch_size"] = 1;
    written["training"]["schedule"] = {{"kind", "interleaved"}, {"chunks", plan.order.chunks}};
    const double time = simulated(parse_json(written.dump(), "by-hand.json")).time.value();
    CHECK(plan.estimate.step_time == doctest::Approx(time).epsilon(1e-9));
  }
  CHECK(chunks == std::set<int>{2, 3, 4});
}

TEST_CASE("an even cut is searched where ranks have several stages, and once if it is the other") {
  Json scenario = pipeline(4, "interleaved");
  const SearchResult both = searched(scenario);
  CHECK(both.counts.plans == 2);
  CHECK(lost(both.counts, Loss::Identical) == 0);
  scenario["model"]["layers"] = 6;  // eight modules are eight stages, however they are cut
  CHECK(lost(searched(scenario).counts, Loss::Identical) == 1);
  scenario["search"]["schedule"] = "1f1b";
  CHECK(searched(scenario).counts.plans == 1);
}

}  // namespace
}  // namespace interlock::best_cut_test
