// Experts on a mesh of their own: states of a device and bytes on links, counted by hand.
// SPDX-License-Identifier: Apache-2.0
//
// Two blocks of width 256 with eight experts of width 1024 and biases, in bf16 (2 bytes) under Adam
// (12 more bytes a parameter). An expert is 256 x 1024 + 1024 + 1024 x 256 + 256 = 525,568
// parameters; a half of one, which keeps the biases after the sum whole, 262,912; a quarter
// 131,584.
#include <doctest/doctest.h>

#include <map>
#include <numeric>

#include "tests/validate/support/layout_trial.h"

namespace interlock::expert_mesh_test {
namespace {

constexpr double kLayers = 2, kExperts = 8;
const std::map<int, double> kParameters = {{1, 525'568}, {2, 262'912}, {4, 131'584}};

struct Degrees {
  int tensor = 1, data = 1, expert = 1, expert_tensor = 1, zero = 0;
};

LayoutTrial trial_of(const Degrees& degrees) {
  const auto number = [](const char* key, int value) {
    return ", \"" + std::string(key) + "\": " + std::to_string(value);
  };
  return {.model = small_transformer(static_cast<int>(kLayers), true),
          .cluster = R"({"kind": "uniform", "device": "a100-40g", "link": {"bandwidth": "16 GB/s"},
                         "devices": )" +
                     std::to_string(degrees.tensor * degrees.data) + "}",
          .parallel =
              R"("pipeline": 1, "sequence_parallel": true)" + number("tensor", degrees.tensor) +
              number("data", degrees.data) + number("expert", degrees.expert) +
              number("expert_tensor", degrees.expert_tensor) + number("zero_stage", degrees.zero),
          .training = R"("strategy": "global", "schedule": "1f1b", "optimizer": "adam",
                         "precision": "bf16", "steps": 2, "micro_batches": 2,
                         "global_batch_size": )" +
                      std::to_string(4 * degrees.data)};
}

double bytes_of(const Degrees& degrees, MemoryClass memory_class) {
  const Metrics metrics = run(trial_of(degrees)).measurement.metrics;
  return metrics.devices[0].memory[static_cast<std::size_t>(memory_class)].value();
}

/// Parameters of the experts that a device has.
double held(const Degrees& degrees) {
  return kLayers * kExperts / degrees.expert * kParameters.at(degrees.expert_tensor);
}

TEST_CASE("a device has its experts, or its parts of them, and its part of their states") {
  for (const int tensor : {1, 2, 4}) {
    const int data = 8 / tensor;
    // Parameters beside experts, of a device that has all experts, divided as tensors are.
    const Degrees whole = {tensor, data, 1, tensor, 0};
    const double dense = bytes_of(whole, MemoryClass::Weights) / 2 - held(whole);
    for (const int parts : {1, 2, 4}) {
      for (const int expert : {1, 2, 4, 8}) {
        if (8 % (parts * expert) != 0) continue;
        for (const int zero : {0, 1}) {
          const Degrees degrees = {tensor, data, expert, parts, zero};
          const double copies = 8.0 / (parts * expert);
          const double states =
              zero == 0 ? dense + held(degrees) : dense / data + held(degrees) / copies;
          INFO("tensor " << tensor << ", experts on " << expert << " devices, each on " << parts
                         << ": " << held(degrees) << " of " << dense + held(degrees)
                         << " parameters, held by " << copies << " devices; ZeRO " << zero);
          CHECK(bytes_of(degrees, MemoryClass::Weights) ==
                doctest::Approx(2 * (dense + held(degrees))).epsilon(1e-12));
          CHECK(bytes_of(degrees, MemoryClass::Optimizer) ==
                doctest::Approx(12 * states).epsilon(1e-12));
        }
      }
    }
  }
}

TEST_CASE("two tensor devices that share experts send tokens and no gradients of experts") {
  const auto sent = [](const Degrees& degrees) {
    const Metrics metrics = run(trial_of(degrees)).measurement.metrics;
    return std::accumulate(
        metrics.links.begin(), metrics.links.end(), 0.0,
        [](double sum, const LinkMetrics& l) { return sum + l.bytes.value() * l.stands_for; });
  };
  // Each device has half of the 2 x 64 tokens of a micro-batch, sends each to two experts whose
  // buffers have a quarter more, half of them to the other device; there and back, forward and
  // backward, of two micro-batches.
  const double tokens = 2 * 64 / 2.0 * 2 * 1.25 * 256 * 2 / 2;
  const double exchanged = 2 * tokens * 4 * 2 * kLayers;
  // Devices that both have all experts add up their gradients instead: each sends half and a half.
  const double gradients = 2 * 2 * kLayers * kExperts * kParameters.at(1);
  INFO(exchanged << " B of tokens, or " << gradients << " B of gradients");
  CHECK(sent({2, 1, 2, 1}) - sent({2, 1, 1, 1}) ==
        doctest::Approx(exchanged - gradients).epsilon(1e-9));
}

}  // namespace
}  // namespace interlock::expert_mesh_test
