// Memory of a process beside its tensors, and of optimisers between updates, by hand.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/plan/lower_plan.h"
#include "tests/scenarios/plan/small_run.h"

namespace interlock::used_memory_test {
namespace {

constexpr double kMebibyte = 1024 * 1024;
constexpr const char* kBatch = "training.global_batch_size=16";

const DeviceMetrics& device_of(const ScenarioResult& result) {
  return result.measurement.metrics.devices.front();
}

double used(const ScenarioResult& result) { return device_of(result).used_memory.value().value(); }
double peak(const ScenarioResult& result) { return device_of(result).peak_memory.value(); }

double held(const ScenarioResult& result, MemoryClass what) {
  return device_of(result).memory[static_cast<std::size_t>(what)].value();
}

double parameters_of(const ScenarioResult& result) {
  double parameters = 0;
  for (const Module& module : result.plan.question.training().graph.modules) {
    parameters += static_cast<double>(module.parameters);
  }
  return parameters;
}

std::string framework(const std::string& members) { return "training.framework={" + members + "}"; }

TEST_CASE("memory in use has a context, communicators and what the allocator keeps") {
  const ScenarioResult alone = run(small_run({}));
  CHECK(used(alone) == doctest::Approx(1.1 * peak(alone) + 0.4e9));
  const ScenarioResult four = run(small_run({"parallel.tensor=2", "parallel.data=4", kBatch}));
  CHECK(used(four) == doctest::Approx(1.1 * peak(four) + 0.4e9 + (544 + 688) * kMebibyte));
  INFO("a framework says its own context, and peaks have its allocator's reserve");
  const ScenarioResult own =
      run(small_run({framework(R"("context_memory": "1573 MiB", "reserve": 0.25)")}));
  CHECK(used(own) == doctest::Approx(peak(own) + 1573 * kMebibyte));
}

TEST_CASE("memory in use is unknown on a device whose architecture is not told") {
  const ScenarioResult result =
      run(small_run({R"(cluster={"kind": "uniform", "devices": 1, "link": {"bandwidth": "1 GB/s"},
           "device": {"memory": "80 GiB", "memory_bandwidth": "2 TB/s",
                      "peak": {"bf16": "300 TFLOP/s"}}})"}));
  CHECK_FALSE(device_of(result).used_memory.has_value());
}

TEST_CASE("a device that is no GPU has neither contexts nor communicators of GPUs") {
  const ScenarioResult result = run(
      small_run({"cluster=tpu-v6e-pod", "parallel.data=256", "training.global_batch_size=256"}));
  CHECK_FALSE(device_of(result).used_memory.has_value());
}

TEST_CASE("what updates make anew is kept by the devices that update, for their share") {
  const std::string buffers = framework(R"("update_buffers": 6)");
  const auto more = [&](const Overrides& layout) {
    Overrides with = layout;
    with.push_back(buffers);
    const ScenarioResult plain = run(small_run(layout)), kept = run(small_run(with));
    CHECK(peak(kept) - peak(plain) == doctest::Approx(held(kept, MemoryClass::Optimizer) -
                                                      held(plain, MemoryClass::Optimizer)));
    CHECK(step_of(kept) == step_of(plain));
    return (peak(kept) - peak(plain)) / parameters_of(plain);
  };
  CHECK(more({}) == doctest::Approx(6));
  CHECK(more({"parallel.data=8", kBatch}) == doctest::Approx(6));
  CHECK(more({"parallel.data=8", "parallel.zero_stage=1", kBatch}) == doctest::Approx(6.0 / 8));
  INFO("states that hosts keep are updated there");
  CHECK(more({"training.optimizer=adam", "training.offload.optimizer=0.5"}) == doctest::Approx(3));
}

TEST_CASE("gradients of both formats take six bytes a parameter, and travel in fp32") {
  const auto with = [](const std::string& gradients) {
    return run(small_run({"parallel.data=8", "parallel.zero_stage=1", kBatch,
                          framework(R"("gradients": ")" + gradients + "\"")}));
  };
  const ScenarioResult wide = with("fp32"), both = with("both");
  const double parameters = parameters_of(wide);
  CHECK(held(wide, MemoryClass::Gradients) == doctest::Approx(4 * parameters));
  CHECK(held(both, MemoryClass::Gradients) == doctest::Approx(6 * parameters));
  CHECK(step_of(both) == step_of(wide));
}

}  // namespace
}  // namespace interlock::used_memory_test
