// The cost of an update against closed forms: passes over gradients, and bytes of each parameter.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"

namespace interlock::update_cost_test {
namespace {

/// Two blocks on devices on which nothing but 1 GB/s of memory takes time; one step.
ScenarioResult run(int devices, const Overrides& more) {
  Overrides all = {R"(model={"kind": "transformer", "layers": 2, "hidden_size": 256,
                      "attention_heads": 4, "sequence_length": 128, "vocab_size": 1024})",
                   R"(cluster={"kind": "uniform", "devices": )" + std::to_string(devices) +
                       R"(, "link": {"bandwidth": "1 GB/s"},
                      "device": {"memory": "80 GB", "memory_bandwidth": "1 GB/s",
                                 "peak": {"bf16": "1 EFLOP/s"}, "efficiency": "peak"}})",
                   "parallel.data=" + std::to_string(devices),
                   "training.strategy=global",
                   "training.global_batch_size=8",
                   "training.steps=1"};
  all.insert(all.end(), more.begin(), more.end());
  return run_scenario(loaded(all), false);
}

/// Returns what `framework` adds to a step.
double added(int devices, const std::string& framework, const std::string& setting) {
  const auto step = [&](const std::string& of) {
    return run(devices, {setting, "training.framework=" + of})
        .measurement.metrics.step_time.value();
  };
  return step(framework) - step("{}");
}

double parameters() {
  double count = 0;
  const ScenarioResult result = run(1, {});
  for (const Module& module : result.plan.question.training().graph.modules) {
    count += static_cast<double>(module.parameters);
  }
  return count;
}

}  // namespace

TEST_CASE("gradients are swept, and weights cast, once for each update") {
  const std::string two = "training.micro_batches=2";
  CHECK(added(1, R"({"update_bytes": 32})", two) ==
        doctest::Approx(32 * parameters() / 1e9).epsilon(1e-9));
  INFO("three passes over gradients of two bytes, or of four");
  CHECK(added(1, R"({"gradient_sweeps": 3})", two) ==
        doctest::Approx(6 * parameters() / 1e9).epsilon(1e-9));
  CHECK(added(1, R"({"gradient_sweeps": 3, "gradients": "fp32"})", two) -
            added(1, R"({"gradients": "fp32"})", two) ==
        doctest::Approx(12 * parameters() / 1e9).epsilon(1e-9));
}

TEST_CASE("ZeRO divides what an update moves, and sweeps where it divides gradients") {
  const auto bytes = [&](int zero) {
    return added(4, R"({"update_bytes": 8})", "parallel.zero_stage=" + std::to_string(zero));
  };
  const auto sweeps = [&](int zero) {
    return added(4, R"({"gradient_sweeps": 4})", "parallel.zero_stage=" + std::to_string(zero));
  };
  const double whole = 8 * parameters() / 1e9;
  CHECK(bytes(0) == doctest::Approx(whole).epsilon(1e-9));
  CHECK(bytes(1) == doctest::Approx(whole / 4).epsilon(1e-9));
  CHECK(sweeps(0) == doctest::Approx(whole).epsilon(1e-9));
  INFO("ZeRO 1 holds whole gradients, ZeRO 2 a part of them");
  CHECK(sweeps(1) == doctest::Approx(whole).epsilon(1e-9));
  CHECK(sweeps(2) == doctest::Approx(whole / 4).epsilon(1e-9));
}

}  // namespace interlock::update_cost_test
