// Optimisers under pipelines that do not flush, by hand: Muon, basis rotation, predicted weights.
// SPDX-License-Identifier: Apache-2.0
#include "sim/measure/metric_table.h"
#include "tests/scenarios/plan/small_run.h"

namespace interlock::asynchronous_updates_test {
namespace {

// A block of 256 columns: q, k, v and o of 256 x 256, and an MLP of 256 x 1024 and 1024 x 256.
constexpr double kWidth = 256, kMlp = 1024;
constexpr double kMatrices = 4 * kWidth * kWidth + 2 * kWidth * kMlp;
constexpr double kRate = 1e12, kFp32 = 1e11, kBandwidth = 1e12;

/// Two stages of a block each, the second with the readout: it takes longest, so a window of eight
/// micro-batches is its eight forwards and backwards, and its update.
ScenarioResult trained(const std::string& optimizer, const std::string& schedule) {
  return run({R"(model={"kind": "transformer", "layers": 2, "hidden_size": 256,
                 "attention_heads": 4, "sequence_length": 128, "vocab_size": 1024, "bias": false})",
              R"(cluster={"kind": "uniform", "devices": 2,
                 "link": {"bandwidth": "100 TB/s"},
                 "device": {"memory": "80 GB", "memory_bandwidth": "1 TB/s",
                            "peak": {"bf16": "1 TFLOP/s", "fp32": "100 GFLOP/s"},
                            "efficiency": "peak"}})",
              "partition=[2,2]", "training.strategy=global", "training.schedule=" + schedule,
              "training.global_batch_size=8", "training.micro_batch_size=1",
              "training.optimizer=" + optimizer, "training.steps=4"});
}

/// Returns by how much an update takes longer than Adam's, of a window of 2BW.
double longer(const std::string& optimizer) {
  return step_of(trained(optimizer, "pipedream-2bw")) - step_of(trained("adam", "pipedream-2bw"));
}

/// A product of 16 or 32 bits on this device.
double product(double m, double n, double k, double element, double rate) {
  return std::max(2 * m * n * k / rate, element * (m * k + k * n + m * n) / kBandwidth);
}

Bytes held(const DeviceMetrics& device, MemoryClass memory_class) {
  return device.memory[static_cast<std::size_t>(memory_class)];
}

}  // namespace

TEST_CASE("Muon's products are a part of every window of 2BW, on every stage") {
  const auto steps_of_newton = [](double n, double m) {
    return 5 *
           (product(n, n, m, 2, kRate) + product(n, n, n, 2, kRate) + product(n, m, n, 2, kRate));
  };
  const double products = 4 * steps_of_newton(kWidth, kWidth) + 2 * steps_of_newton(kWidth, kMlp);
  const double no_second_moment = 2 * 4 * kMatrices / kBandwidth;
  CHECK(longer("muon") == doctest::Approx(products - no_second_moment).epsilon(1e-6));

  const ScenarioResult adam = trained("adam", "pipedream-2bw");
  const ScenarioResult muon = trained("muon", "pipedream-2bw");
  const Metrics& metrics = muon.measurement.metrics;
  CHECK(metrics.staleness == std::map<int, std::int64_t>{{1, 8 * metrics.measured_steps}});
  CHECK(number_of(step_metric("most_staleness"), metrics) == 1);
  CHECK(number_of(step_metric("weight_versions_bytes"), metrics) ==
        number_of(step_metric("weights_bytes"), metrics));
  for (int rank = 0; rank < 2; ++rank) {
    const DeviceMetrics& device = metrics.devices[rank];
    CHECK(device.weight_versions == 2);
    CHECK(held(device, MemoryClass::WeightVersions) == held(device, MemoryClass::Weights));
    const Bytes states = held(device, MemoryClass::Optimizer);
    CHECK(held(adam.measurement.metrics.devices[rank], MemoryClass::Optimizer) - states ==
          Bytes(4 * kMatrices));
  }
}

TEST_CASE("Muon's products come after every micro-batch where each has an update") {
  const auto more = [](const std::string& optimizer) {
    return step_of(trained(optimizer, "pipedream"));
  };
  CHECK(more("muon") - more("adam") == doctest::Approx(8 * longer("muon")).epsilon(1e-6));
  INFO("the first of two stages is one update behind and keeps one version more");
  const Metrics metrics = trained("muon", "pipedream").measurement.metrics;
  CHECK(metrics.devices[0].weight_versions == 2);
  CHECK(metrics.devices[1].weight_versions == 1);
}

TEST_CASE("basis rotation turns what Adam reads, and renews its bases, in fp32") {
  const auto side = [](double n, double m, double every) {
    const double factored = 8.0 / 3 * n * n * n / (0.08 * kFp32);
    return product(n, n, m, 4, kFp32) + 3 * product(n, m, n, 4, kFp32) +
           (3 * product(n, n, n, 4, kFp32) + factored) / every;
  };
  const double averages = 3 * 4 * 6 * kWidth * kWidth / kBandwidth;
  const double shorter = 4 * side(kWidth, kWidth, 5) + 2 * side(kWidth, kMlp, 5) + averages;
  CHECK(longer(R"({"kind": "basis-rotation", "sides": "shorter", "basis_every": 5})") ==
        doctest::Approx(shorter).epsilon(1e-6));
  const double longer_averages = 3 * 4 * (4 * kWidth * kWidth + 2 * kMlp * kMlp) / kBandwidth;
  const double both = 8 * side(kWidth, kWidth, 10) + 2 * side(kWidth, kMlp, 10) +
                      2 * side(kMlp, kWidth, 10) + averages + longer_averages;
  CHECK(longer(R"("basis-rotation")") == doctest::Approx(both).epsilon(1e-6));

  const auto states = [](const std::string& optimizer) {
    const Metrics metrics = trained(optimizer, "pipedream-2bw").measurement.metrics;
    return *number_of(step_metric("states_bytes"), metrics);
  };
  CHECK(states(R"("basis-rotation")") - states("adam") ==
        2 * 4 * (10 * kWidth * kWidth + 2 * kMlp * kMlp));
}

TEST_CASE("without versions, updates that are rare make few micro-batches stale") {
  const Metrics metrics =
      trained("adam", R"({"kind": "pipelined-backprop", "update_every": 8})").measurement.metrics;
  INFO("one forward of the first stage is ahead when it updates, and none of the second");
  const std::int64_t steps = metrics.measured_steps;
  CHECK(metrics.staleness == std::map<int, std::int64_t>{{0, 7 * steps}, {1, steps}});
  CHECK(metrics.devices[0].weight_versions == 1);
}

TEST_CASE("predicted weights are written once an update and held beside other versions") {
  const auto asked = [](int copies) {
    return R"({"kind": "adam", "predictions": )" + std::to_string(copies) + "}";
  };
  for (const int copies : {1, 2}) {
    const Metrics metrics = trained(asked(copies), "pipedream-2bw").measurement.metrics;
    const DeviceMetrics& last = metrics.devices[1];
    const Bytes weights = held(last, MemoryClass::Weights);
    CHECK(held(last, MemoryClass::WeightVersions) == (1 + copies) * weights);
    CHECK(longer(asked(copies)) ==
          doctest::Approx(copies * weights.value() / kBandwidth).epsilon(1e-6));
  }
}

}  // namespace interlock::asynchronous_updates_test
