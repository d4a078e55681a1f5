// SplitBrain: what a step of a VGG takes, whose replicas share fully connected layers in groups.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"

namespace interlock::split_brain_test {
namespace {

constexpr double kPort = 10e9, kBatch = 16;

/// Eight replicas in one node; kernels take time by their flops alone, messages by their bytes.
const std::string kReplicas = R"({
  "model": "vgg-16",
  "cluster": {"kind": "machine", "devices_per_node": 8,
              "device": {"name": "counter", "memory": "800 GB",
                         "memory_bandwidth": "1000000 TB/s", "peak": {"fp32": "10 TFLOP/s"},
                         "efficiency": {}, "launch_overhead": "0 us"},
              "port": {"latency": "0 us", "bandwidth": "10 GB/s"}},
  "parallel": {"pipeline": 1, "data": 8, "overlap_gradients": false},
  "training": {"strategy": "global", "global_batch_size": 128, "precision": "fp32"}
})";

Metrics run(const Overrides& overrides) {
  const std::vector<Question> all = load_questions(document(kReplicas, overrides));
  REQUIRE(all.size() == 1);
  return run_scenario(all.front(), false).measurement.metrics;
}

TEST_CASE("throughput falls by what groups exchange, and gains what gradients save") {
  const double compute = run({"cluster.port.bandwidth=1000000000 GB/s"}).step_time.value();
  const double layers[3][2] = {{25'088, 4096}, {4096, 4096}, {4096, 1000}};
  const double convolutions = 14'714'688;
  double divided = 0;
  for (const auto& layer : layers) divided += layer[0] * layer[1] + layer[1];
  for (const int k : {1, 2, 4, 8}) {
    const double n = k, holders = 8 / n;
    // k rounds; each device receives (k-1)/k of the inputs of a round, and of the outputs of the
    // last layer its own samples'; as much on the way back.
    double group = 0;
    for (const auto& layer : layers) group += 2 * n * (n - 1) / n * kBatch * layer[0] * 4;
    group += 2 * n * (n - 1) / n * kBatch * layers[2][1] / n * 4;
    // Rings: of convolutions over 8, of a k-th of the layers over its 8 / k holders.
    const double gradients =
        2 * 7.0 / 8 * convolutions * 4 + 2 * (holders - 1) / holders * divided / n * 4;
    const double expected = compute + (group + gradients) / kPort;
    const Metrics metrics = run({"parallel.split_brain=" + std::to_string(k)});
    INFO("k = ", k, ": compute ", compute, " s, groups ", group / kPort, " s, gradients ",
         gradients / kPort, " s");
    CHECK(metrics.step_time.value() == doctest::Approx(expected).epsilon(1e-6));
    const auto weights = static_cast<std::size_t>(MemoryClass::Weights);
    CHECK(metrics.devices[0].memory[weights].value() == 4 * (convolutions + divided / n));
  }
}

TEST_CASE("groups that cannot be are refused") {
  const auto refused = [](const Overrides& overrides) {
    return mistakes_of(document(kReplicas, overrides));
  };
  CHECK(refused({"parallel.split_brain=3"}) ==
        "set: /parallel/split_brain: fully connected layers are divided within groups of the 8 "
        "data devices; expected a divisor of 8, got 3");
  CHECK(refused({"parallel.split_brain=2", "parallel.expert=2"})
            .find("expected \"expert\" or \"split_brain\"") != std::string::npos);
  CHECK(refused({"parallel.split_brain=2", "model=resnet-50"})
            .find("expected split_brain 1, or a VGG") != std::string::npos);
}

}  // namespace
}  // namespace interlock::split_brain_test
