// Devices of several kinds in each node, against closed forms.
// SPDX-License-Identifier: Apache-2.0
//
// Layers of an MLP take 2 x samples x inputs x outputs flops forward and twice that backward, on
// devices whose memory and links are so fast that nothing else takes time.
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"

namespace interlock::node_kinds_test {
namespace {

constexpr double kLayer = 2.0 * 1000 * 1024 * 1024;  // flops of a forward

std::string kind(int count, int teraflops) {
  return R"({"count": )" + std::to_string(count) + R"(, "device": {"name": "card)" +
         std::to_string(teraflops) +
         R"(", "memory": "8 GiB", "memory_bandwidth": "1000000 TB/s", "efficiency": "peak",
             "peak": {"bf16": ")" +
         std::to_string(teraflops) + R"( TFLOP/s"}}})";
}

/// Returns the metrics of a stage of one layer on each of the devices: a card of 1 TFLOP/s and two
/// of 4 in each node.
Metrics metrics_of(int nodes, const std::string& parallel, int batch) {
  std::string widths = "1024, 1024";
  for (int stage = 3; stage < 3 * nodes; ++stage) widths += ", 1024";
  const std::string fast = R"({"bandwidth": "1000000 TB/s"})";
  const JsonValue value = document(
      R"({"model": {"kind": "mlp", "input_size": 1024, "hidden_sizes": [)" + widths +
      R"(], "classes": 1024}, "cluster": {"kind": "machine", "name": "box", "port": )" + fast +
      R"(, "cards": )" + fast + R"(, "nodes": )" + std::to_string(nodes) + R"(, "kinds": [)" +
      kind(1, 1) + ", " + kind(2, 4) + R"(]}, "partition": "uniform", "parallel": )" + parallel +
      R"(, "training": {"strategy": "global", "micro_batch_size": 1000, "schedule": "gpipe",
         "global_batch_size": )" +
      std::to_string(batch) + "}}");
  return run_scenario(load_questions(value).front(), false).measurement.metrics;
}

TEST_CASE("a pipeline over the kinds of a node takes the closed form of GPipe") {
  const double slow = kLayer / 1e12, fast = kLayer / 4e12;
  for (const int nodes : {1, 2, 3}) {
    const double expected = 3 * (nodes * (slow + 2 * fast) + 3 * slow);
    const Metrics metrics =
        metrics_of(nodes, R"({"pipeline": )" + std::to_string(3 * nodes) + "}", 4000);
    MESSAGE(nodes << " nodes: one micro-batch through all, then 3 more on a slow card: " << expected
                  << " s, simulated " << metrics.step_time.value() << " s");
    CHECK(metrics.step_time.value() == doctest::Approx(expected).epsilon(1e-6));
    CHECK(metrics.devices.size() == 3U * nodes);
    INFO("MFU counts each device's own peak");
    const double flops = 4.0 * 3 * 3 * nodes * kLayer;
    CHECK(*metrics.mfu == doctest::Approx(flops / (expected * nodes * 9e12)).epsilon(1e-6));
  }
}

TEST_CASE("replicas on the devices of a node go at the pace of its slowest kind") {
  const Metrics metrics = metrics_of(1, R"({"data": 3, "pipeline": 1})", 12000);
  CHECK(metrics.step_time.value() == doctest::Approx(4 * 3 * 3 * kLayer / 1e12).epsilon(1e-5));
  REQUIRE(metrics.devices.size() == 3);
  CHECK(metrics.devices[1].busy == doctest::Approx(0.25).epsilon(1e-4));
  CHECK(metrics.devices[2].busy == doctest::Approx(0.25).epsilon(1e-4));
}

}  // namespace
}  // namespace interlock::node_kinds_test
