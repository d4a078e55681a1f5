// Inference: forwards alone, against closed forms; sparse layers against their slowest worker.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"

namespace interlock::inference_test {
namespace {

Measurement measured(const std::string& text, const Overrides& overrides = {}) {
  const std::vector<Question> all = load_questions(document(text, overrides));
  REQUIRE(all.size() == 1);
  return run_scenario(all.front(), true).measurement;
}

TEST_CASE("a pipeline of forwards: a micro-batch is through after all stages, one more each") {
  // Stages of 3, 1, 4, 1 ms and messages of no time; a step is m requests, and the slowest stage
  // hands one on every 4 ms; those before it wait until there is room behind them.
  const std::string text = R"({
    "model": {"kind": "profile", "modules": [
      {"forward": "3 ms", "backward_input": "5 ms", "backward_weight": "7 ms"},
      {"forward": "1 ms", "backward_input": "5 ms", "backward_weight": "7 ms"},
      {"forward": "4 ms", "backward_input": "5 ms", "backward_weight": "7 ms"},
      {"forward": "1 ms", "backward_input": "5 ms", "backward_weight": "7 ms"}]},
    "cluster": {"kind": "uniform", "devices": 4, "memory": "80 GiB",
                "link": {"bandwidth": "100 GB/s"}},
    "training": {"strategy": "inference", "micro_batches": 6, "steps": 4}
  })";
  const Measurement measurement = measured(text);
  CHECK(measurement.metrics.step_time.value() == doctest::Approx(6 * 4e-3));
  CHECK(measurement.metrics.devices[0].busy == doctest::Approx(3.0 / 4));
  for (const Span& span : measurement.log.spans) {
    const OpKind kind = measurement.program.ops[span.op].kind;
    CHECK((kind == OpKind::F || kind == OpKind::U));
    if (kind == OpKind::U) CHECK(span.start == span.end);
  }
}

TEST_CASE("nothing is kept: weights alone, no gradients, no optimiser states, no stash") {
  const std::string text = R"({
    "model": "gpt2", "cluster": {"machine": "dgx-a100-80g", "devices": 4},
    "training": {"strategy": "inference", "global_batch_size": 16, "micro_batch_size": 4,
                 "optimizer": "adam"}})";
  const Measurement measurement = measured(text);
  double weights = 0;
  for (const DeviceMetrics& device : measurement.metrics.devices) {
    const auto bytes = [&](MemoryClass memory_class) {
      return device.memory[static_cast<std::size_t>(memory_class)].value();
    };
    weights += bytes(MemoryClass::Weights);
    CHECK(bytes(MemoryClass::Gradients) == 0);
    CHECK(bytes(MemoryClass::Optimizer) == 0);
    CHECK(bytes(MemoryClass::Stash) == 0);
    CHECK(device.peak_stash.value() == 0);
  }
  // 124,439,808 parameters and, on the last stage, its own copy of the 50,257 x 768 embeddings.
  CHECK(weights == 2.0 * (124'439'808 + 50'257 * 768));
  std::vector<double> held(4, 0);
  for (const MemoryChange& change : measurement.log.memory) {
    held[static_cast<std::size_t>(change.rank)] += change.bytes;
  }
  CHECK(held == std::vector<double>(4, 0));
}

TEST_CASE("sparse layers take, one after the other, as long as their slowest workers") {
  // Two workers; ports of 1 GB/s without latency; 1000 samples of 2 bytes. Exchanges: 500, 0 and
  // 2000 neurons, so 1, 0 and 4 ms. The kernels' times are those of the same layers alone.
  const std::string start = R"({"model": {"kind": "sparse-mlp", "input_size": 4000, "layers": [)";
  const std::string end = R"(]}, "cluster": {"kind": "machine", "device": "a100-80g",
      "devices_per_node": 2, "port": {"latency": "0 us", "bandwidth": "1 GB/s"}},
    "parallel": {"tensor": 2, "pipeline": 1},
    "training": {"strategy": "inference", "global_batch_size": 1000}})";
  const auto step = [&](const std::string& layers, const Overrides& overrides = {}) {
    return measured(start + layers + end, overrides).metrics.step_time.value();
  };
  const std::string layers =
      R"({"size": 4000, "needed": [[2000, 500], [300, 2000]]}, {"size": 4000, "density": 0},
         {"size": 4000, "density": 1})";
  const double kernels = step(layers, {"cluster.port.bandwidth=1000000000 GB/s"});
  CHECK(step(layers) == doctest::Approx(kernels + 1e-3 + 0 + 4e-3));
}

TEST_CASE("inference has one schedule and none of what trains") {
  CHECK(mistakes({"training.strategy=inference"}).empty());
  CHECK(mistakes({"training.strategy=inference", "training.schedule=1f1b"}) ==
        "set: /training/schedule: \"1f1b\" is no schedule for inference training; expected "
        "gpipe");
  CHECK(mistakes({R"(training.strategy={"kind": "inference", "unneeded_input_gradients":
                 "skipped"})"})
            .find("means nothing for an inference strategy") != std::string::npos);
}

}  // namespace
}  // namespace interlock::inference_test
