// Empty gradients that products keep: shapes of weights counted by hand.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/scenarios/plan/small_run.h"

namespace interlock::dummy_gradients_test {
namespace {

/// Returns the elements that `kept` adds to the peak of each device.
std::vector<double> added(const std::string& kept, const Overrides& more) {
  const auto peaks = [&](const std::string& how) {
    const std::string framework = R"(training.framework={"dummy_weight_gradients": ")" + how;
    const ScenarioResult result = run(joined(small_run({framework + "\"}"}), more));
    std::vector<double> bytes;
    for (const DeviceMetrics& device : result.measurement.metrics.devices) {
      bytes.push_back(device.peak_memory.value());
    }
    return bytes;
  };
  std::vector<double> more_elements = peaks(kept);
  const std::vector<double> none = peaks("none");
  for (std::size_t i = 0; i < none.size(); ++i) {
    more_elements[i] = (more_elements[i] - none[i]) / 2;  // bf16
  }
  return more_elements;
}

using Elements = std::vector<double>;

// Weights of a block of 256 columns.
constexpr double kQkv = 256 * 768, kProjection = 256 * 256, kUp = 256 * 1024, kDown = 1024 * 256;

}  // namespace

TEST_CASE("each shape of weights has one empty gradient, however many layers have it") {
  INFO("a readout of 1024 words has the shape of the first product of an MLP; a table has none");
  CHECK(added("all", {}) == Elements{kQkv + kProjection + kUp + kDown});
  CHECK(added("all", {"model.layers=4"}) == Elements{kQkv + kProjection + kUp + kDown});
  INFO("a readout of 2048 words has a shape of its own, tied to the embedding or not");
  for (const char* tied : {"true", "false"}) {
    CHECK(added("all", {"model.vocab_size=2048", std::string("model.tied_embeddings=") + tied}) ==
          Elements{kQkv + kProjection + kUp + kDown + 256 * 2048});
  }
}

TEST_CASE("devices keep the shapes that they hold") {
  INFO("half of each product on two tensor devices; the second stage alone has a readout");
  const Overrides tensor = {R"(cluster={"machine": "dgx-a100-80g", "devices": 2})",
                            "parallel.tensor=2", "simulate.fold=none"};
  const double half = (kQkv + kProjection + kUp + kDown) / 2;
  CHECK(added("all", tensor) == Elements{half, half});
  const Overrides stages = {R"(cluster={"machine": "dgx-a100-80g", "devices": 2})",
                            "parallel.pipeline=2", "model.vocab_size=2048", "partition=[2, 2]",
                            "training.schedule=1f1b"};
  CHECK(added("all", stages) ==
        Elements{kQkv + kProjection + kUp + kDown, kQkv + kProjection + kUp + kDown + 256 * 2048});
}

TEST_CASE("experts have one for the products of one of them, if all products have") {
  const Overrides experts = {"model.experts=4", "model.experts_per_token=2",
                             "model.ffn_hidden_size=512"};
  const double router = 256 * 4, readout = 256 * 1024;
  const double dense = kQkv + kProjection + router + readout;
  CHECK(added("dense", experts) == Elements{dense});
  CHECK(added("all", experts) == Elements{dense + 256 * 512 + 512 * 256});
}

}  // namespace interlock::dummy_gradients_test
