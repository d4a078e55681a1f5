// Layers with degrees of their own beside keys that move memory, counted by hand.
// SPDX-License-Identifier: Apache-2.0
//
// Eight blocks of width 256 in bf16 on eight devices, as in layer_sums_test.cc. A micro-batch of 16
// sequences of 64 tokens for all devices: a data device of a layer on t tensor devices has 2 t.
#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "tests/layers/support/random_layers.h"

namespace interlock::layer_memory_test {
namespace {

constexpr int kDevices = 8, kBlocks = 8;
constexpr double kTokens = 16 * 64, kWidth = 256, kVocabulary = 512, kElement = 2;

struct Case {
  std::vector<LayersOf> layers;  // all else is tensor 1 x data 8
  int zero = 0;
  int pipeline = 1;
};

/// Runs `one` with more members of `training`, and of its schedule.
Metrics measured(const Case& one, const std::string& training, const std::string& schedule = "") {
  LayersTrial trial;
  trial.layers = one.layers;
  trial.trial = {
      .model = R"({"kind": "transformer", "hidden_size": 256, "attention_heads": 8,
                   "vocab_size": 512, "sequence_length": 64, "attention": "fused",
                   "tied_embeddings": false, "layers": 8})",
      .cluster = R"({"kind": "machine", "device": "a100-40g", "devices_per_node": 8, "nodes": )" +
                 std::to_string(one.pipeline) + R"(, "host": {"bandwidth": "25 GB/s"},
                     "port": {"latency": "0 us", "bandwidth": "50 GB/s"},
                     "cards": {"per_node": 8, "bandwidth": "25 GB/s"}})",
      .parallel = R"("tensor": 1, "data": 8, "overlap_gradients": false,
                     "order": ["tensor", "data", "context", "pipeline"], "pipeline": )" +
                  std::to_string(one.pipeline) + R"(, "zero_stage": )" + std::to_string(one.zero),
      .training = R"("strategy": "global", "precision": "bf16", "optimizer": "adam",
                     "micro_batches": 6, "steps": 2, "global_batch_size": 96,
                     "schedule": {"kind": "1f1b")" +
                  schedule + "}" + training};
  return run(one.layers.empty() ? trial.trial : trial.with_layers()).measurement.metrics;
}

/// Returns the tensor degree of each module: embedding, blocks, readout.
std::vector<int> degrees(const Case& one) {
  std::vector<int> tensor(kBlocks + 2, 1);
  for (const LayersOf& layers : one.layers) {
    std::fill(tensor.begin() + layers.first, tensor.begin() + layers.end, layers.tensor);
  }
  return tensor;
}

/// Bytes of a tensor of the hidden width that a device of such a layer has of a micro-batch.
double hidden(int tensor) { return kTokens * tensor / kDevices * kWidth * kElement; }

double parameters(int tensor) {
  return (256.0 * 768 + 768 + 256 * 256 + 256 * 1024 + 1024 + 1024 * 256) / tensor + 256 + 256 +
         2 * 512;
}

const std::vector<std::vector<LayersOf>>& some_layers() {
  static const std::vector<std::vector<LayersOf>> all = {
      {{3, 6, 2, 4}}, {{1, 3, 8, 1}, {3, 5, 2, 4}, {7, 9, 4, 2}}, {{1, 9, 4, 2}}};
  return all;
}

TEST_CASE("the host keeps and gets of each layer what the device has of it in its own degrees") {
  for (const auto& layers : some_layers()) {
    for (const int zero : {0, 1, 2, 3}) {
      for (const double share : {0.25, 1.0}) {
        const std::string offload = R"(, "offload": {"optimizer": )" + std::to_string(share) + "}";
        const Case one = {layers, zero}, plain = {{}, zero};
        double held = 0;  // parameters that a device updates, more than if all are alike
        for (const int tensor : degrees(one)) {
          const double data = zero > 0 ? 1.0 * kDevices / tensor : 1, all = zero > 0 ? kDevices : 1;
          if (tensor > 1) held += parameters(tensor) / data - parameters(1) / all;
        }
        const Metrics own = measured(one, offload), base = measured(plain, offload);
        const Metrics without = measured(one, "");
        INFO(layers_text(layers) << ", ZeRO " << zero << ", " << share);
        for (std::size_t d = 0; d < own.devices.size(); ++d) {
          const DeviceMetrics &device = own.devices[d], &alike = base.devices[d];
          const auto more = [](Bytes one_way, Bytes other) { return (one_way - other).value(); };
          CHECK(more(device.host.optimizer, alike.host.optimizer) ==
                doctest::Approx(12 * share * held).epsilon(1e-9));
          CHECK(more(device.host.gradients, alike.host.gradients) ==
                doctest::Approx(kElement * share * held).epsilon(1e-9));
          const auto states = static_cast<std::size_t>(MemoryClass::Optimizer);
          CHECK(device.memory[states].value() ==
                doctest::Approx((1 - share) * without.devices[d].memory[states].value()));
        }
      }
    }
  }
}

TEST_CASE("a readout that is put off keeps its input as its own degrees lay it, and its logits") {
  for (const auto& layers : std::vector<std::vector<LayersOf>>{
           {}, {{1, 9, 4, 2}}, {{9, 10, 4, 2}}, {{7, 9, 2, 4}, {9, 10, 8, 1}}, {{7, 10, 4, 2}}}) {
    const Case one = {layers, 1, 2};
    const int readout = degrees(one).back();
    const auto stash = [&](int put_off) {
      return measured(one, "", R"(, "deferred_readout": )" + std::to_string(put_off))
          .devices.back()
          .peak_stash.value();
    };
    INFO((layers.empty() ? "all alike" : layers_text(layers)));
    const double logits = kTokens * readout / kDevices * kVocabulary / readout * kElement;
    CHECK(stash(3) - stash(2) == doctest::Approx(hidden(readout) + logits).epsilon(1e-9));
  }
}

TEST_CASE("layers that are computed again together are of one layout, and keep one input") {
  for (const auto& layers : some_layers()) {
    const Case one = {layers};
    const std::vector<int> tensor = degrees(one);
    for (const int group : {2, 3, 8}) {
      double saved = 0;
      int before = 0;  // layers of the group so far
      for (int block = 1; block <= kBlocks; ++block) {
        const bool goes_on = before > 0 && before < group && tensor[block] == tensor[block - 1];
        if (goes_on) saved += hidden(tensor[block]);
        before = goes_on ? before + 1 : 1;
      }
      const auto stash = [&](int together) {
        return measured(one, R"(, "recompute": {"group": )" + std::to_string(together) + "}")
            .devices.front()
            .memory[static_cast<std::size_t>(MemoryClass::Stash)]
            .value();
      };
      INFO(layers_text(layers) << ", " << group << " together");
      CHECK(stash(1) - stash(group) == doctest::Approx(saved).epsilon(1e-9));
    }
  }
}

}  // namespace
}  // namespace interlock::layer_memory_test
