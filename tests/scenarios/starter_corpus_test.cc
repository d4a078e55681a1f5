// Every configuration that people have gets a scenario, and the scenario an answer.
// SPDX-License-Identifier: Apache-2.0
//
// Two devices, so that all of it takes seconds: most of these models fit on none of them, which is
// an answer too. Samples have room for the tokens of an image.
#include "base/file.h"
#include "scenarios/contract/set_key.h"
#include "scenarios/plan/plan.h"
#include "scenarios/search/plan_search.h"
#include "scenarios/simulate/run_scenario.h"
#include "scenarios/starter/starter.h"
#include "tests/scenarios/documents.h"

namespace interlock::starter_corpus_test {
namespace {

/// Searches by a few degrees, one micro-batch and one schedule, and simulates what is found.
/// Returns whether something was; else all was lost by memory.
bool check_search(JsonValue document) {
  apply_overrides(document, {R"(search={"pipeline": [1, 2], "tensor": [1, 2], "expert": [1],
      "micro_batch_size": [1], "recompute": ["full"], "zero_stage": [1], "schedule": ["1f1b"],
      "overlap_weights": [false], "shard": [2]})"});
  const SearchResult found = search_plans(document, 1);
  if (found.plans.empty()) {
    CHECK(lost(found.counts, Loss::Memory) == found.counts.plans - found.counts.refused);
    return false;
  }
  const FoundPlan& best = found.plans.front();
  const ScenarioResult result =
      simulate_plan(make_plan(load_questions(best.document).front()), Keep::Nothing);
  CHECK(result.measurement.metrics.step_time.value() ==
        doctest::Approx(best.estimate.step_time).epsilon(1e-9));
  return true;
}

TEST_CASE("init, simulate and search answer for each configuration of the corpus") {
  const std::string folder = data_folder("tests/models/configs");
  const JsonValue table = read_json_file(folder + "/origins.json");
  CHECK(table.items.size() >= 40);
  int found = 0;
  for (const JsonValue& entry : table.items) {
    const std::string path = folder + "/" + entry.find("file")->text;
    CAPTURE(path);
    const Starter starter = make_starter(
        {.model = path, .machine = "dgx-h100", .devices = 2, .sequence_length = 1024}, 1);
    CHECK(starter.plans > 0);
    CHECK(starter.step_time > Seconds(0));
    const JsonValue document = parse_json(starter_text(starter, ""), "starter.json");
    const std::vector<Question> questions = load_questions(document);
    REQUIRE(questions.size() == 1);
    const ScenarioResult result = simulate_plan(make_plan(questions.front()), Keep::Explanation);
    CHECK(result.measurement.metrics.step_time > Seconds(0));
    CHECK(result.measurement.metrics.fits_in_memory == starter.fits);
    found += check_search(document) ? 1 : 0;
  }
  CHECK(found >= 25);
}

}  // namespace
}  // namespace interlock::starter_corpus_test
