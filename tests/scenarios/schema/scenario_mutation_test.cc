// Seeded damage to good scenarios: whatever comes of it, they load or are refused with an Error.
// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include "base/random.h"
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"
#include "tests/scenarios/schema/mutate.h"
#include "tests/support/cases.h"

namespace interlock::scenario_mutation_test {
namespace {

/// Checks that a loaded scenario fits together, and so does what is chosen for it.
void check_whole(const Question& scenario) {
  const Plan plan = lay_out(scenario).draft;
  CHECK(std::ssize(plan.rank_of_stage) == scenario.layout.stages * plan.copies);
  const Training& training = scenario.training();
  CHECK(plan.partition.stages() == parts_of(training.strategy, scenario.layout.stages));
  CHECK(plan.partition.boundaries.back() == std::ssize(training.graph.modules));
  const Mesh& mesh = scenario.layout.mesh;
  CHECK(mesh.degree(Dimension::Pipeline) == scenario.layout.ranks());
  CHECK(mesh.devices() <= scenario.cluster.devices);
  CHECK((mesh.devices() == scenario.cluster.devices || mesh.devices() == scenario.layout.ranks()));
  CHECK(mesh.replicas() % mesh.shard == 0);
  CHECK(mesh.devices_of_rank() % (mesh.expert * mesh.tensor_of_experts()) == 0);
  CHECK(training.micro_batches % training.schedule.update_every == 0);
}

/// Runs what is small enough; queues that are too short may deadlock, which is told as an Error.
bool runs(Question scenario) {
  const double size = static_cast<double>(scenario.training().micro_batches) *
                      scenario.training().steps * scenario.layout.stages;
  if (size > 2'000) return false;
  scenario.simulation.engine = EngineKind::Native;
  try {
    const Metrics metrics = run_scenario(scenario, false).measurement.metrics;
    CHECK(metrics.busy >= 0);
    CHECK(metrics.busy <= 1 + 1e-12);
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST_CASE("thousands of mutations of good scenarios load or are refused") {
  for (const std::string& text : good_scenarios()) REQUIRE(mistakes_of(parse_json(text, "")) == "");
  std::uint64_t right = 0, wrong = 0, run = 0;
  const auto count = static_cast<std::uint64_t>(cases(3000));
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    CAPTURE(seed);
    const std::string text = mutated_scenario(seed);
    try {
      const std::vector<Question> scenarios = load_questions(parse_json(text, "m.json"));
      REQUIRE(!scenarios.empty());
      for (const Question& scenario : scenarios) check_whole(scenario);
      if (seed % 4 == 0 && runs(scenarios.front())) ++run;
      ++right;
    } catch (const Error& error) {
      CHECK(std::string(error.what()).size() > 10);
      ++wrong;
    }
  }
  MESSAGE(right << " loaded, of which " << run << " were run; " << wrong << " were refused");
  CHECK(right > count / 20);
  CHECK(run > count / 100);
  CHECK(wrong > count / 2);
}

}  // namespace
}  // namespace interlock::scenario_mutation_test
