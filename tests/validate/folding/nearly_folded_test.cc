// Devices that stand for others nearly: as if every link were as busy as the busiest of its class.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "base/error.h"
#include "tests/support/cases.h"
#include "tests/validate/support/layout_trial.h"

namespace interlock::nearly_folded_test {
namespace {

double step_of(const ScenarioResult& result) {
  return result.measurement.metrics.step_time.value();
}

/// Returns how much longer a step is than that of all devices; nothing where the folding is exact,
/// or the loader refuses `trial`.
std::optional<double> error_of(LayoutTrial trial) {
  trial.engine = "native";
  trial.fold = "\"nearly\"";
  try {
    const ScenarioResult nearly = run(trial);
    if (nearly.plan.uneven.empty()) return {};
    trial.fold = "\"none\"";
    const ScenarioResult whole = run(trial);
    if (!nearly.measurement.metrics.steady || !whole.measurement.metrics.steady) return {};
    return step_of(nearly) / step_of(whole) - 1;
  } catch (const Error&) {
    return {};
  }
}

/// A pipeline whose replicas add up gradients by trees beside its messages, on nodes of `per_node`.
LayoutTrial trees(int pipeline, int data, int tensor, int per_node) {
  const auto text = [](int number) { return std::to_string(number); };
  return {.model = small_transformer(pipeline),
          .cluster = R"({"kind": "machine", "device": "a100-40g", "devices_per_node": )" +
                     text(per_node) + R"(, "nodes": )" + text(pipeline * data * tensor / per_node) +
                     R"(, "port": {"latency": "2 us", "bandwidth": "64 GB/s"},
                          "cards": {"latency": "4 us", "bandwidth": "16 GB/s"}})",
          .parallel = R"("pipeline": )" + text(pipeline) + R"(, "data": )" + text(data) +
                      R"(, "tensor": )" + text(tensor) + R"(, "bucket": "256 KiB")",
          .training = R"("strategy": "global", "micro_batches": 8, "steps": 2,
                         "optimizer": "adam", "global_batch_size": )" +
                      text(8 * data)};
}

// Their devices communicate for most of a step, so that this is the worst that can be.
TEST_CASE("random layouts that are folded nearly have nearly the step of all their devices") {
  std::vector<double> errors;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(cases(200)); ++seed) {
    const LayoutTrial trial = random_layout(seed);
    INFO("seed " << seed << ": " << document(trial));
    const std::optional<double> error = error_of(trial);
    if (!error) continue;
    errors.push_back(std::abs(*error));
    CHECK(errors.back() < 0.15);
  }
  REQUIRE(errors.size() >= static_cast<std::size_t>(met_by_cases(5)));
  std::sort(errors.begin(), errors.end());
  CHECK(errors[errors.size() / 2] < 0.001);
  CHECK(errors[errors.size() * 4 / 5] < 0.05);
  MESSAGE(errors.size() << " steps are off by " << errors[errors.size() / 2]
                        << " in the middle, by " << errors.back() << " at most");
}

// By a limit of 1.4 times the bytes of the average link these fold, and are 18 and 36 % off: the
// first one's links take most of a step, and in the second one what comes often is uneven.
TEST_CASE("layouts whose links are busier than their like for much of a step do not fold nearly") {
  for (const std::uint64_t seed : {297, 544}) {
    const LayoutTrial trial = random_layout(seed);
    INFO("seed " << seed << ": " << document(trial));
    CHECK(std::abs(error_of(trial).value_or(0)) < 0.15);
  }
}

TEST_CASE("trees of an all-reduce beside messages of a pipeline fold nearly, to a fiftieth") {
  for (const auto& [pipeline, data, tensor, per_node] :
       {std::array{2, 16, 1, 4}, {4, 16, 1, 4}, {2, 16, 2, 4}, {2, 12, 1, 2}, {4, 32, 1, 8}}) {
    const LayoutTrial trial = trees(pipeline, data, tensor, per_node);
    INFO(document(trial));
    const std::optional<double> error = error_of(trial);
    REQUIRE(error.has_value());
    MESSAGE(pipeline << " x " << data << " x " << tensor << ": " << *error);
    CHECK(std::abs(*error) < 0.02);
  }
}

TEST_CASE("auto folds nearly rather than simulate more than 512 devices") {
  LayoutTrial trial = trees(4, 256, 1, 4);
  const ScenarioResult nearly = run(trial);
  CHECK(nearly.measurement.metrics.devices.size() == 4);
  CHECK(nearly.plan.uneven.find("node0") != std::string::npos);
  trial = trees(4, 16, 1, 4);
  const ScenarioResult whole = run(trial);
  CHECK(whole.measurement.metrics.devices.size() == 64);
  CHECK(whole.plan.uneven.empty());
}

TEST_CASE("auto folds nearly rather than simulate more than 2,048 pairs that pass tokens") {
  for (const int data : {24, 96}) {
    LayoutTrial trial = trees(2, data, 1, 4);
    trial.model = divisible_transformer(2, true);
    trial.parallel += R"(, "expert": 24)";
    const ScenarioResult result = run(trial);
    INFO(data << ": " << result.measurement.metrics.devices.size() << " devices simulated");
    CHECK(result.plan.uneven.empty() == (data == 24));  // 48 or 192 devices, each with 24 others
    if (data == 24) continue;
    trial.engine = "native";
    trial.fold = "\"none\"";
    CHECK(std::abs(step_of(result) / step_of(run(trial)) - 1) < 0.02);
  }
}

TEST_CASE("what carries much more than its like is simulated whole, by nearly and by auto") {
  // On a ring of devices, stages lie beside each other, and messages cross links of their own: one
  // that stood for the four of a boundary would cross one link with those of all boundaries.
  LayoutTrial trial = {
      .model = small_transformer(8),
      .cluster = R"({"kind": "machine", "device": "a100-40g", "nodes": 32,
                     "devices_per_node": 1, "network":
                     {"kind": "torus", "of": "devices", "dimensions": [32],
                      "link": {"latency": "1 us", "bandwidth": "2 GB/s"}}})",
      .parallel = R"("pipeline": 8, "data": 4, "outer": {"every": 64})",
      .training = R"("strategy": "global", "micro_batches": 8, "steps": 2, "optimizer": "adam",
                     "global_batch_size": 32)"};
  trial.fold = "\"nearly\"";
  const ScenarioResult nearly = run(trial);
  trial.fold = "\"none\"";
  CHECK(step_of(nearly) == doctest::Approx(step_of(run(trial))).epsilon(1e-7));
}

}  // namespace
}  // namespace interlock::nearly_folded_test
