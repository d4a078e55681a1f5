// Networks whose modules tell true samples from false ones, and the false ones.
// SPDX-License-Identifier: Apache-2.0
#include "validate/network/contrast.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace interlock {
namespace {

constexpr std::uint64_t kFalseStream = 2'000'000'099;  // which kind of thing random numbers are for

}  // namespace

NeuralNetwork contrasted(NeuralNetwork network) {
  for (std::size_t m = 0; m + 1 < network.modules.size(); ++m) {
    std::vector<Layer>& layers = network.modules[m].layers;
    const int width = layers.back().outputs;
    layers.push_back(
        {.kind = LayerKind::Goodness, .name = "goodness", .inputs = width, .outputs = width});
  }
  network.false_samples = network.samples_per_micro_batch;
  network.samples_per_micro_batch *= 2;
  return network;
}

std::string why_no_contrast(const Job& job) {
  if (job.network.samples != SampleKind::Tokens) {
    return "false samples are made of tokens; expected a transformer for \"forward-forward\"";
  }
  if (!job.strategy.module_gradients) {
    return "operators that learn from what they make alone are simulated only; expected {\"kind\": "
           "\"forward-forward\", \"module_gradients\": \"computed\"}";
  }
  const bool again = std::ranges::any_of(
      job.recompute, [](Recompute recompute) { return recompute != Recompute::None; });
  if (again) {
    return "modules that learn from their goodness keep what they make; expected \"recompute\": "
           "\"none\" beside \"forward-forward\"";
  }
  return "";
}

void append_false_samples(Batch& batch, std::uint64_t seed, int number) {
  CHECK(!batch.tokens.empty(), "samples of tokens");
  Random random(mix64(seed) ^ mix64(kFalseStream), static_cast<std::uint64_t>(number));
  const std::size_t tokens = batch.tokens.size();
  batch.tokens.reserve(2 * tokens);
  for (std::size_t i = 0; i < tokens; ++i) {
    const bool other = random.uniform() < 0.5;
    batch.tokens.push_back(batch.tokens[other ? random.bits() % tokens : i]);
  }
  batch.targets.resize(2 * tokens, kNoTarget);
}

}  // namespace interlock
