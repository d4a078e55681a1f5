// Kernels that a framework has for some sizes alone, against passes and flops counted by hand.
// SPDX-License-Identifier: Apache-2.0
#include "tests/scenarios/plan/small_run.h"

namespace interlock::framework_kernels_test {
namespace {

constexpr double kTokens = 2.0 * 128, kColumns = 256, kHeads = 4;

/// Two blocks on one device, one micro-batch of two samples, one step.
ScenarioResult run(const std::string& device, const std::string& framework, int vocabulary = 1024,
                   const std::string& precision = "bf16") {
  const std::string model = R"(model={"kind": "transformer", "layers": 2, "hidden_size": 256,
      "attention_heads": 4, "attention": "materialised", "sequence_length": 128, "vocab_size": )";
  const std::string cluster = R"(cluster={"kind": "uniform", "devices": 1,
      "link": {"bandwidth": "1 GB/s"}, "device": )";
  return run_scenario(
      loaded({model + std::to_string(vocabulary) + "}", cluster + device + "}",
              "parallel.pipeline=1", "training.strategy=global", "training.global_batch_size=2",
              "training.steps=1", "training.precision=" + precision,
              "training.framework=" + framework}),
      false);
}

}  // namespace

TEST_CASE("a softmax that no fused kernel takes is cast, scaled, masked and cast back") {
  const std::string memory = R"({"memory": "80 GB", "memory_bandwidth": "1 GB/s",
      "peak": {"bf16": "1 EFLOP/s"}, "efficiency": "peak"})";
  const double fused = step_of(run(memory, "{}"));
  // Scores in units of two bytes; forward 3 + 4 + 4 + 4 + 3 of them for 2, back 3 + 6 + 4 + 4 + 3
  // for 3. Eight heads of samples are no multiple of three, and two of four.
  const double scores = kTokens * 128 * kHeads;
  const double expected = 2 * (18 - 2 + 20 - 3) * scores * 2 / 1e9;
  const double got = step_of(run(memory, R"({"softmax_group": 3})")) - fused;
  MESSAGE("33 passes more over " << scores << " scores in two blocks: " << expected << " s; got "
                                 << got);
  CHECK(got == doctest::Approx(expected).epsilon(1e-9));
  CHECK(step_of(run(memory, R"({"softmax_group": 4})")) == fused);

  const std::string host = R"({"kernel_issue": "1 s", "softmax_group": )";
  const double launches = step_of(run(memory, host + "3}")) - step_of(run(memory, host + "8}"));
  CHECK(launches == doctest::Approx(2 * (4 + 4)));  // seconds, kernels
}

TEST_CASE("products of an odd vocabulary take their flops over a slower rate") {
  const std::string rate = R"({"memory": "80 GB", "memory_bandwidth": "100 TB/s",
      "peak": {"bf16": "1 TFLOP/s"}, "efficiency": {"gemm": {"compute": 0.5}}})";
  const std::string slower = R"({"odd_product_speed": 0.25})";
  const double flops = 3 * 2 * kTokens * kColumns * 1025;  // forward, and both gradients
  const double expected = flops / 0.5e12 * (1 / 0.25 - 1);
  const double got = step_of(run(rate, slower, 1025)) - step_of(run(rate, "{}", 1025));
  MESSAGE(flops << " flops at a quarter of 0.5 TFLOP/s: " << expected << " s more; got " << got);
  CHECK(got == doctest::Approx(expected).epsilon(1e-9));
  CHECK(step_of(run(rate, slower, 1026)) == step_of(run(rate, "{}", 1026)));
  const std::string single = R"({"memory": "80 GB", "memory_bandwidth": "100 TB/s",
      "peak": {"bf16": "1 TFLOP/s", "fp32": "1 TFLOP/s"}, "efficiency": "peak"})";
  CHECK(step_of(run(single, slower, 1025, "fp32")) == step_of(run(single, "{}", 1025, "fp32")));
}

TEST_CASE("products that stay in 16 bits beside 8 have a speed of their own") {
  const std::string rate = R"({"memory": "80 GB", "memory_bandwidth": "100 TB/s",
      "peak": {"bf16": "1 TFLOP/s", "fp8": "2 TFLOP/s"},
      "efficiency": {"gemm": {"compute": 0.5}}})";
  const auto step = [&](const std::string& speeds, const char* precision) {
    return step_of(run(rate, speeds, 1024, precision));
  };
  // Forward, and both gradients; stored scores of attention and what is made of them, too.
  const double readout = 3 * 2 * kTokens * kColumns * 1024;
  const double wide = readout + 2 * 2 * 3 * 2 * kTokens * 128 * kColumns;
  const double layers = 3 * 2 * kTokens * kColumns * kColumns * 12 * 2;
  const std::string half = R"({"product_speed": 0.5})", both = R"({"product_speed": 0.5,
      "wide_product_speed": 0.25})";
  const double slower = wide / 0.5e12 + layers / 1e12;
  const double got = step(half, "fp8") - step("{}", "fp8");
  MESSAGE("half the speed: " << slower << " s more; got " << got);
  CHECK(got == doctest::Approx(slower).epsilon(1e-9));
  CHECK(step(both, "fp8") - step(half, "fp8") ==
        doctest::Approx(wide / 0.5e12 * (1 / 0.25 - 1 / 0.5)).epsilon(1e-9));
  CHECK(step(both, "bf16") == step(half, "bf16"));
}

}  // namespace interlock::framework_kernels_test
