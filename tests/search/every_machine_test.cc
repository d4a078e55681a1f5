// Every machine of the catalogue answers: a plan for it is found, and its simulation runs.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "hardware/networks/cluster_reader.h"
#include "scenarios/contract/set_key.h"
#include "scenarios/simulate/run_scenario.h"
#include "scenarios/starter/starter.h"

namespace interlock::every_machine_test {
namespace {

/// Searches more than init does, and finds nothing slower.
void check_search(JsonValue document, const Starter& starter) {
  const std::string sizes = "[1, " + std::to_string(starter.plan.micro_batch_size) + "]";
  apply_overrides(document, {R"(search={"schedule": ["1f1b"], "recompute": [")" +
                             starter.plan.recompute + R"("], "overlap_weights": [false],
                             "micro_batch_size": )" +
                             sizes + "}"});
  const SearchResult found = search_plans(document, 1);
  REQUIRE(!found.plans.empty());
  CHECK(found.plans.front().estimate.step_time <= starter.step_time.value() * (1 + 1e-9));
}

TEST_CASE("a plan is found, simulated and searched on every machine of the catalogue") {
  for (const std::string& machine : catalogue_names()) {
    CAPTURE(machine);
    const Starter starter = make_starter({"gpt2", machine, 8}, 1);
    CHECK(starter.fits);
    const JsonValue document = parse_json(starter_text(starter, ""), "starter");
    const ScenarioResult result = run_scenario(load_questions(document).front(), false);
    const Metrics& metrics = result.measurement.metrics;
    MESSAGE(machine << ": " << metrics.step_time.value() * 1e3 << " ms");
    CHECK(result.plan.question.mesh.devices() == 8);
    CHECK(metrics.fits_in_memory);
    CHECK(metrics.step_time.value() == doctest::Approx(starter.step_time.value()).epsilon(1e-6));
    MESSAGE("between a thousandth and all of the peak");
    REQUIRE(metrics.mfu);
    CHECK(*metrics.mfu > 0.001);
    CHECK(*metrics.mfu < 0.95);
    CHECK(result.confidence.range);
    CHECK(result.confidence.at_peak.empty());
    check_search(document, starter);
  }
}

}  // namespace
}  // namespace interlock::every_machine_test
