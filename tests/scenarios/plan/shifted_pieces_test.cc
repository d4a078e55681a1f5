// Steps whose forwards are made of several pieces that shift against each other.
// SPDX-License-Identifier: Apache-2.0
#include "tests/scenarios/plan/small_run.h"

namespace interlock::shifted_pieces_test {
namespace {

/// Runs three steps at once on a rank that chooses its order, with sums over four devices inside
/// the layers, whose ports have `bandwidth`.
ScenarioResult shifted(int bandwidth, int steps) {
  const std::string cluster = R"(cluster={"kind": "machine", "name": "drawn", "nodes": 1,
      "devices_per_node": 8, "cards": {"per_node": 1, "latency": "4 us", "bandwidth": "0.5 GB/s"},
      "device": {"name": "small", "memory": "80 GiB", "memory_bandwidth": "321 GB/s",
                 "launch_overhead": "2 us", "peak": {"bf16": "80 TFLOP/s"},
                 "efficiency": {"gemm": {"compute": 0.7, "memory": 0.8}}},
      "port": {"latency": "2 us", "bandwidth": ")";
  return run({R"(model={"kind": "transformer", "layers": 3, "hidden_size": 256,
                  "attention_heads": 8, "vocab_size": 512, "sequence_length": 64,
                  "attention": "fused", "positions": "rotary", "latent_attention":
                  {"query_rank": 96, "kv_rank": 64, "head_size": 32, "rotary_head_size": 16,
                   "value_head_size": 32}})",
              cluster + std::to_string(bandwidth) + R"( GB/s"}})", "parallel.pipeline=1",
              "parallel.data=2", "parallel.tensor=4", "training.strategy=forward-forward",
              R"(training.schedule={"kind": "eager", "in_flight": 3, "queue": {"buffered": 2}})",
              "training.global_batch_size=2", "training.micro_batches=1",
              "training.optimizer=adam-8bit", "training.steps=" + std::to_string(steps)});
}

TEST_CASE("pieces of a forward that shift without their sum are no repeat") {
  for (int bandwidth = 20; bandwidth <= 90; ++bandwidth) {
    CAPTURE(bandwidth);
    const ScenarioResult few = shifted(bandwidth, 8);  // whose shares of time add up, or it throws
    if (bandwidth % 10 > 0) continue;
    CHECK(step_of(few) == doctest::Approx(step_of(shifted(bandwidth, 64))).epsilon(0.01));
  }
}

}  // namespace
}  // namespace interlock::shifted_pieces_test
