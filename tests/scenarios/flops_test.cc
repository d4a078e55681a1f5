// MFU and HFU against the flops that the model itself counts.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"
#include "tests/support/model_flops.h"

namespace interlock::flops_test {
namespace {

constexpr const char* kBatch = "training.micro_batches=4";

/// Flops that `mfu` or `hfu` stands for, one step: share * step time * peak * devices.
double flops_of(const ScenarioResult& result, std::optional<double> share) {
  const Question& scenario = result.plan.question;
  const auto peak = scenario.cluster.machines.front()
                        .device.peak[static_cast<std::size_t>(scenario.training().precision)];
  return share.value() * result.measurement.metrics.step_time.value() * peak.value().value() *
         scenario.layout.ranks();
}

TEST_CASE("MFU counts the model's flops once a micro-batch, whatever the strategy") {
  for (const char* strategy : {"global", "local", "pairwise"}) {
    const Question scenario =
        loaded({"model=gpt2", R"(model={"base": "gpt2", "attention": "materialised"})",
                "cluster=dgx-a100-80g", "parallel.pipeline=4",
                std::string("training.strategy=") + strategy, "training.global_batch_size=8",
                "training.steps=2", kBatch});
    const ScenarioResult result = run_scenario(scenario, false);
    const double model = model_flops(scenario.training().graph).value() * 4;
    INFO(strategy << ": " << model << " flops a step");
    CHECK(flops_of(result, result.measurement.metrics.mfu) == doctest::Approx(model));
    const double executed = flops_of(result, result.measurement.metrics.hfu);
    if (std::string(strategy) == "global") CHECK(executed == doctest::Approx(model));
    if (std::string(strategy) != "global") CHECK(executed > 1.01 * model);  // heads
  }
}

TEST_CASE("a full recompute shows in HFU and not in MFU") {
  const auto run = [](const char* recompute) {
    return run_scenario(
        loaded({"model=gpt2", "cluster=dgx-a100-80g", "parallel.pipeline=4",
                "training.strategy=global", "training.global_batch_size=8", "training.steps=2",
                std::string("training.recompute=") + recompute, kBatch}),
        false);
  };
  const ScenarioResult none = run("none"), full = run("full");
  const auto mfu = [](const ScenarioResult& r) { return flops_of(r, r.measurement.metrics.mfu); };
  const auto hfu = [](const ScenarioResult& r) { return flops_of(r, r.measurement.metrics.hfu); };
  CHECK(mfu(full) == doctest::Approx(mfu(none)));
  // Blocks run their forward twice, the readout does not: less than 4 / 3.
  CHECK(hfu(full) > 1.15 * hfu(none));
  CHECK(hfu(full) < 4.0 / 3 * hfu(none));
}

}  // namespace
}  // namespace interlock::flops_test
