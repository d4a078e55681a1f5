// Versions of SimGrid: step times under the same contention.
// SPDX-License-Identifier: Apache-2.0
//
// Step times that SimGrid 3.32 gave; that they are right is for tests/validate/contention_test.cc
// and tests/sim/shared_links_test.cc to say. Its solver computes in doubles, and its model of a
// flow and the way it adds dates up have stayed the same up to 4.0: on an x86-64, 4.0 gives these
// to the last digit. A version that sums in another order may differ in the last digits of what is
// left of a flow, once for each other flow that begins or ends meanwhile, a few hundred times in
// these runs: 1e-12 of the step.
#include <doctest/doctest.h>

#include <algorithm>

#include "base/json/json.h"
#include "scenarios/simulate/run_scenario.h"

namespace interlock::simgrid_versions_test {
namespace {

struct ContendedStep {
  std::string name;
  double seconds;
};

void check_steps(const std::string& file, const std::vector<ContendedStep>& steps) {
  const auto scenarios = load_questions(read_json_file(EXAMPLES_FOLDER "/" + file));
  for (const ContendedStep& step : steps) {
    INFO(step.name);
    const auto scenario = std::find_if(scenarios.begin(), scenarios.end(),
                                       [&](const Question& s) { return s.name == step.name; });
    REQUIRE(scenario != scenarios.end());
    const Metrics metrics = run_scenario(*scenario, false).measurement.metrics;
    CHECK(metrics.engine == "simgrid");
    CHECK(metrics.step_time.value() == doctest::Approx(step.seconds).epsilon(1e-12));
  }
}

TEST_CASE("contended steps take what they took under SimGrid 3.32, to 1e-12") {
  check_steps("networks.json", {{"networks | one switch", 1.400576177904},
                                {"networks | torus", 1.400596177904},
                                {"networks | dragonfly", 1.400610177904},
                                {"networks | four regions", 6.481927914371}});
  const std::string images = "ResNet-50 on images of 512 pixels | devices=";
  check_steps("../papers/distdl.json", {{images + "2 | bands", 0.014223624540064},
                                        {images + "4 | bands", 0.007489224772677},
                                        {images + "8 | bands", 0.004172114046782}});
  const std::string layouts = "stages of unlike layouts | bandwidth=";
  check_steps(
      "../papers/cross-mesh-resharding.json",
      {{layouts + "25 Gb/s | schedule=1f1b | resharding=point_to_point", 1.4126226648139},
       {layouts + "25 Gb/s | schedule=1f1b | resharding=broadcast", 0.4942070146797999},
       {layouts + "100 Gb/s | schedule=1f1b | resharding=broadcast", 0.15338989885475},
       {layouts + "800 Gb/s | schedule=eager-1f1b | resharding=broadcast", 0.08272313453812}});
}

}  // namespace
}  // namespace interlock::simgrid_versions_test
