// Gradients on their way to their owners: two buckets of a micro-batch, however slow the network.
// SPDX-License-Identifier: Apache-2.0
#include "tests/scenarios/plan/small_run.h"

namespace interlock::gradient_buckets_test {
namespace {

constexpr double kBucket = 4e6;  // bytes

/// Returns the peak of 24 small blocks on four replicas whose links have `bandwidth`.
Bytes peak_of(int zero_stage, int micro_batches, const std::string& bandwidth) {
  return run({R"(model={"kind": "transformer", "layers": 24, "hidden_size": 512,
                  "attention_heads": 4, "sequence_length": 256, "vocab_size": 512})",
              R"(cluster={"kind": "uniform", "devices": 4, "device": "h100",
                  "link": {"latency": "5 us", "bandwidth": ")" +
                  bandwidth + "\"}}",
              "parallel.pipeline=1", "parallel.data=4",
              "parallel.zero_stage=" + std::to_string(zero_stage), "parallel.bucket=\"4 MB\"",
              "training.strategy=global", "training.micro_batch_size=1",
              "training.global_batch_size=" + std::to_string(4 * micro_batches),
              "training.steps=2"})
      .measurement.metrics.devices.front()
      .peak_memory;
}

TEST_CASE("a slow network holds up backwards, and fills no memory with gradients") {
  for (const int zero_stage : {2, 3}) {
    for (const int micro_batches : {1, 3}) {
      INFO("ZeRO " << zero_stage << ", " << micro_batches << " micro-batches");
      const Bytes fast = peak_of(zero_stage, micro_batches, "10 TB/s");
      const Bytes slow = peak_of(zero_stage, micro_batches, "100 MB/s");
      const double more = (slow - fast).value() / kBucket;
      MESSAGE(more, " buckets more of some 38");
      CHECK(slow <= fast + Bytes(2 * kBucket));
    }
  }
}

TEST_CASE("micro-batches in flight do not wait for each other's buckets for ever") {
  for (const int zero_stage : {2, 3}) {
    for (const int in_flight : {2, 6, 16}) {
      INFO("ZeRO " << zero_stage << ", " << in_flight << " in flight");
      const ScenarioResult result = run(
          {R"(model={"kind": "transformer", "layers": 8, "hidden_size": 256,
                  "attention_heads": 4, "sequence_length": 256, "vocab_size": 512})",
           R"(cluster={"kind": "uniform", "devices": 2, "device": "h100",
                  "link": {"latency": "5 us", "bandwidth": "1 GB/s"}})",
           "parallel.pipeline=1", "parallel.data=2",
           "parallel.zero_stage=" + std::to_string(zero_stage), "parallel.bucket=\"1 MB\"",
           "training.strategy=local", "training.micro_batch_size=1",
           R"(training.schedule={"kind": "eager", "in_flight": )" + std::to_string(in_flight) + "}",
           "training.global_batch_size=2", "training.steps=4"});
      CHECK(step_of(result) > 0);
    }
  }
}

}  // namespace
}  // namespace interlock::gradient_buckets_test
