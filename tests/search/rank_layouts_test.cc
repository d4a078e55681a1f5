// Ranks that divide their stages each in its own way, found by a search.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/random.h"
#include "scenarios/plan/step_time.h"
#include "scenarios/search/plan_search.h"
#include "tests/search/small_machine.h"
#include "tests/support/cases.h"

namespace interlock::rank_layouts_test {
namespace {

using Json = nlohmann::ordered_json;

/// Returns a model whose first four layers differ from its last four, on two ranks of `devices`.
Json unequal(Random& random, int devices) {
  Json layers = Json::array();
  for (int layer = 0; layer < 8; ++layer) {
    const bool first = layer < 4;
    layers.push_back({{"ffn_hidden_size", first ? 256 : 16384}});
  }
  const std::string links = std::to_string(random.integer(5, 80)) + " GB/s";
  return {{"model",
           {{"kind", "transformer"},
            {"layers", 8},
            {"hidden_size", 512},
            {"attention_heads", 8},
            {"ffn_hidden_size", 2048},
            {"vocab_size", 1024},
            {"sequence_length", random.integer(1, 4) * 128},
            {"layer_pattern", layers}}},
          {"cluster", small_machine(2 * devices, links)},
          {"parallel", {{"sequence_parallel", true}}},
          {"training",
           {{"strategy", "global"}, {"global_batch_size", 16}, {"optimizer", "sgd"}, {"steps", 2}}},
          {"search",
           {{"recompute", "none"},
            {"pipeline", 2},
            {"zero_stage", 0},
            {"context", 1},
            {"schedule", "1f1b"},
            {"worth", 0}}}};
}

/// Returns the step time of the layout of each rank, by a document written here; infinite where
/// the loader refuses it.
double time_of(const Json& space, int samples, int devices, int first, int second) {
  Json written = space;
  written.erase("search");
  written["parallel"]["stage_layouts"] = {{{"tensor", first}, {"data", devices / first}},
                                          {{"tensor", second}, {"data", devices / second}}};
  written["training"]["micro_batch_size"] = samples;
  written["training"]["schedule"] = "1f1b";
  try {
    const Question question = load_questions(parse_json(written.dump(), "by-hand.json")).front();
    return estimate_step(make_plan(question), Grade::Simulation).time.value();
  } catch (const Error&) {
    return kInfinity;
  }
}

TEST_CASE("where layers differ ranks divide theirs in ways of their own, the best of all") {
  int apart = 0;
  const int models = std::max(6, cases(6));
  for (int seed = 0; seed < models; ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed), 5);
    const int devices = seed % 2 == 0 ? 2 : 4;
    const Json space = unequal(random, devices);
    const SearchResult result = search_plans(parse_json(space.dump(), "layouts.json"), 1);
    REQUIRE(!result.plans.empty());
    const FoundPlan& best = result.plans.front();
    const bool differs = !best.layout.tensors.empty();
    apart += differs ? 1 : 0;
    // The alike plan that the search began with says what a rank takes at once.
    const FoundPlan& alike = result.plans[differs ? 1 : 0];
    const int samples = alike.layout.micro_batch_size * alike.layout.data;
    double least = alike.estimate.step_time;
    for (int first = 1; first <= devices; first *= 2) {
      for (int second = 1; second <= devices; second *= 2) {
        const double time = time_of(space, samples, devices, first, second);
        INFO("tensor " << first << " and " << second << ": " << time << " s");
        if (first != second) least = std::min(least, time);
      }
    }
    CHECK(best.estimate.step_time == doctest::Approx(least).epsilon(1e-9));
    const StepEstimate again =
        estimate_step(make_plan(load_questions(best.document).front()), Grade::Simulation);
    CHECK(best.estimate.step_time == doctest::Approx(again.time.value()).epsilon(1e-9));
  }
  MESSAGE(apart << " of " << models << " models have ranks that differ");
  CHECK(apart > 0);
}

}  // namespace
}  // namespace interlock::rank_layouts_test
