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

/// Searches a few plans, that of init among them, and finds nothing slower.
void check_search(JsonValue document, const Starter& starter) {
  const StarterPlan& plan = starter.plan;
  const auto with = [](int own) { return "[1, " + std::to_string(own) + "]"; };
  apply_overrides(document, {R"(search={"schedule": ["1f1b"], "zero_stage": [0, 1], "context": [1],
                             "overlap_weights": [false], "recompute": [")" +
                             plan.recompute + R"("], "tensor": )" + with(plan.tensor) +
                             R"(, "pipeline": )" + with(plan.pipeline) +
                             R"(, "micro_batch_size": )" + with(plan.micro_batch_size) + "}"});
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
    CHECK(result.plan.question.layout.mesh.devices() == 8);
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
