// Balanced cuts of models whose messages are cast, against all cuts, simulated.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/scenarios/plan/small_run.h"

namespace interlock::cast_cuts_test {
namespace {

constexpr int kModules = 7;

std::string number_with(double value, const char* unit) {
  return "\"" + std::to_string(value) + " " + unit + "\"";
}

/// Returns modules of random times and outputs, on devices that cast at 1 GB/s, in `stages` stages.
Overrides random_model(std::uint64_t seed, int stages) {
  Random random(83, seed);
  std::string modules;
  for (int m = 0; m < kModules; ++m) {
    const auto time = [&] { return number_with(0.2 + 2 * random.uniform(), "ms"); };
    modules += (m > 0 ? ", " : "") + (R"({"forward": )" + time()) + R"(, "backward_input": )" +
               time() + R"(, "backward_weight": )" + time() + R"(, "output": )" +
               number_with(4 * random.uniform(), "MB") + R"(, "head": "0.3 ms"})";
  }
  const std::string count = std::to_string(stages);
  return {R"(model={"kind": "profile", "modules": [)" + modules + "]}",
          R"(cluster={"kind": "uniform", "devices": )" + count +
              R"(, "link": {"bandwidth": "1000000 TB/s"},
              "device": {"memory": "80 GB", "memory_bandwidth": "1 GB/s",
                         "peak": {"bf16": "1 EFLOP/s"}, "efficiency": "peak"}})",
          "parallel.pipeline=" + count, "training.micro_batches=4", "training.steps=1"};
}

/// Returns how long the busiest stage computes, heads and casts included.
double busiest(const Overrides& overrides) {
  const ScenarioResult result = run_scenario(loaded(overrides), true);
  const Measurement& measured = result.measurement;
  std::vector<double> busy(static_cast<std::size_t>(result.plan.partition.stages()));
  for (const Span& span : measured.log.spans) {
    busy.at(measured.program.ops[span.op].stage) += (span.end - span.start).value();
  }
  return *std::ranges::max_element(busy);
}

/// Returns the least of all cuts into `stages` stages.
double least_of_all(const Overrides& overrides, int stages) {
  double least = 1e9;
  for (unsigned cuts = 0; cuts < 1U << (kModules - 1); ++cuts) {
    std::string lengths;
    int length = 1, found = 1;
    for (int m = 0; m + 1 < kModules; ++m, ++length) {
      if (((cuts >> static_cast<unsigned>(m)) & 1U) == 0) continue;
      lengths += std::to_string(length) + ", ";
      length = 0;
      ++found;
    }
    if (found != stages) continue;
    const std::string partition = "partition=[" + lengths + std::to_string(length) + "]";
    least = std::min(least, busiest(joined(overrides, {partition})));
  }
  return least;
}

TEST_CASE("a balanced cut counts casts: no other has a busiest stage that is less busy") {
  struct Kind {
    std::string training, schedule;
  };
  const std::vector<Kind> kinds = {
      {R"("kind": "global", "activation_format": "fp8", "gradient_format": "int4")", "1f1b"},
      {R"("kind": "global", "gradient_format": "int8")", "gpipe"},
      {R"("kind": "local", "activation_format": "int4")", "eager"},
      {R"("kind": "pairwise", "activation_format": "fp8", "gradient_format": "fp8")", "eager"},
      {R"("kind": "pairwise", "gradient_every": 2, "gradient_format": "fp8")", "eager"},
      {R"("kind": "interlocking", "n_wise": 3, "gradient": "sum", "gradient_format": "fp8")",
       "eager"}};
  int moved = 0;
  for (const Kind& kind : kinds) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const int stages = seed % 2 == 0 ? 3 : 4;
      INFO("{" << kind.training << "}, " << stages << " stages, seed " << seed);
      const Overrides cast = joined(
          random_model(seed, stages),
          {"training.strategy={" + kind.training + "}", "training.schedule=" + kind.schedule});
      const double balanced = busiest(cast);
      CHECK(balanced == doctest::Approx(least_of_all(cast, stages)).epsilon(1e-9));
      Overrides plain = cast;
      for (const std::string key : {"activation_format", "gradient_format"}) {
        if (kind.training.find(key) == std::string::npos) continue;
        plain.push_back("training.strategy." + key + "=training");
      }
      const std::vector<int> cuts = run(plain).plan.partition.boundaries;
      moved += cuts == run(cast).plan.partition.boundaries ? 0 : 1;
    }
  }
  INFO("casts move cuts");
  CHECK(moved > 4);
}

TEST_CASE("first and last stages cast on one side only, so that equal outputs move cuts, too") {
  // Seven modules of 3 ms, outputs of 2 MB: each cast takes 3.03 ms at 1 GB/s. With casts both ways
  // an inner stage has 12.1 ms of them, the others 6.1 ms: 3, 1 and 3 modules, not 3, 2 and 2.
  const Overrides cast = {
      R"(model={"kind": "profile", "modules": [{"repeat": 7, "forward": "1 ms",
          "backward_input": "1 ms", "backward_weight": "1 ms", "output": "2 MB"}]})",
      R"(cluster={"kind": "uniform", "devices": 3, "link": {"bandwidth": "1000000 TB/s"},
          "device": {"memory": "80 GB", "memory_bandwidth": "1 GB/s",
                     "peak": {"bf16": "1 EFLOP/s"}, "efficiency": "peak"}})",
      "parallel.pipeline=3",
      "training.micro_batches=4",
      "training.steps=1",
      R"(training.strategy={"kind": "global", "activation_format": "fp8",
                            "gradient_format": "fp8"})",
      "training.schedule=1f1b"};
  CHECK(run(cast).plan.partition.boundaries == std::vector<int>{0, 3, 4, 7});
  const double each = (2e6 + 1e6 * (1 + 4.0 / 128)) / 1e9;
  CHECK(busiest(cast) == doctest::Approx(4 * std::max(9e-3 + 2 * each, 3e-3 + 4 * each)));
}

}  // namespace
}  // namespace interlock::cast_cuts_test
