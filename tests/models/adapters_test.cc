// Adapters and frozen weights: parameters against published counts, bytes and flops by hand.
// SPDX-License-Identifier: Apache-2.0
#include "models/layers/adapters.h"

#include "tests/models/built.h"

namespace interlock::adapters_test {
namespace {

constexpr double kElement = 2;
// Llama 3 8B: 32 heads and 8 key heads of 128, gated MLP of 14336, not tied.
constexpr double kH = 4096, kQkv = 4096 + 2 * 1024, kFfn = 14336, kTokens = 8192;
constexpr std::int64_t kAll = 8'030'261'248;

BuildOptions lora(int rank, bool fused = true) {
  BuildOptions options{.optimizer = Optimizer::Adam};
  options.adapters = {.rank = rank, .fused = fused};
  return options;
}

BuildOptions only(LinearName name, int rank) {
  BuildOptions options = lora(rank);
  options.adapters.of = {};
  options.adapters.of[static_cast<std::size_t>(name)] = true;
  return options;
}

std::int64_t trained(const ModelGraph& graph) {
  std::int64_t total = 0;
  for (const Module& module : graph.modules) total += weights_of(module).all;
  return total;
}

Module layer(const BuildOptions& options) { return zoo("llama-3-8b", options).modules[1]; }

TEST_CASE("rank 16 on all products trains as many weights of Llama 3 8B as PEFT prints") {
  const ModelGraph graph = zoo("llama-3-8b", lora(16, false));
  INFO(
      "PEFT, print_trainable_parameters(): trainable params: 41,943,040 || all params: "
      "8,072,204,288");
  CHECK(trained(graph) == 41'943'040);
  CHECK(parameters_of(graph) == 8'072'204'288);
  for (const Module& module : graph.modules) CHECK(module.frozen.all > 0);
}

TEST_CASE("fused products have one adapter") {
  const double rank = 16, layers = 32;
  const double each = (kH + kQkv) + (kH + kH) + (kH + 2 * kFfn) + (kFfn + kH);
  const ModelGraph graph = zoo("llama-3-8b", lora(16));
  CHECK(static_cast<double>(trained(graph)) == layers * rank * each);
  CHECK(parameters_of(graph) - trained(graph) == kAll);
}

TEST_CASE("tensor devices divide adapters between them") {
  for (const int devices : {2, 8}) {
    BuildOptions options = lora(16);
    options.sharding.tensor = devices;
    CHECK(trained(zoo("llama-3-8b", options)) * devices == trained(zoo("llama-3-8b", lora(16))));
    CHECK(flops_of(layer(options).backward_weight).value() * devices ==
          doctest::Approx(flops_of(layer(lora(16)).backward_weight).value()).epsilon(1e-12));
  }
}

TEST_CASE("frozen products make no gradient of weights; adapters do six thin products") {
  const Module plain = layer({}), adapted = layer(lora(16));
  const double thin = 16 * ((kH + kQkv) + (kH + kH) + (kH + 2 * kFfn) + (kFfn + kH));
  INFO("2 flops for each of the tokens and weights of A and B");
  CHECK(flops_of(adapted.backward_weight).value() == 2 * kTokens * thin);
  CHECK((flops_of(adapted.forward) - flops_of(plain.forward)).value() == 2 * kTokens * thin);
  CHECK((flops_of(adapted.backward_input) - flops_of(plain.backward_input)).value() ==
        2 * kTokens * thin);
  CHECK(adapted.update[0].bytes < 0.02 * plain.update[0].bytes);
}

TEST_CASE("adapters keep their inner rank numbers a token, frozen products without them nothing") {
  const double kept = layer({}).stash.value();
  CHECK(layer(lora(16)).stash.value() == kept + kElement * kTokens * 16 * 4);
  const double attention_input = kElement * kTokens * kH, inner = kElement * kTokens * kFfn;
  INFO("without the input of queries, keys and values, that of gate and up, and what they made");
  CHECK(layer(only(LinearName::Projection, 8)).stash.value() ==
        kept - 2 * attention_input - inner + kElement * kTokens * 8);
}

TEST_CASE("adapters of experts are as many as the experts") {
  const std::string model = R"({"kind": "transformer", "layers": 1, "hidden_size": 16,
      "attention_heads": 4, "vocab_size": 24, "sequence_length": 32, "experts": 8,
      "expert_ffn_hidden_size": 20})";
  const Module module = built(model, only(LinearName::Second, 3)).modules[1];
  CHECK(weights_of(module).all == 8 * 3 * (20 + 16));
  CHECK(expert_weights_of(module).all == weights_of(module).all);
  CHECK(module.frozen_experts.all == module.expert_parameters - weights_of(module).all);
}

TEST_CASE("weights of four bits become sixteen again before every product that reads them") {
  BuildOptions options = lora(16);
  options.optimizer.frozen = NumberFormat::Nf4;
  const Module plain = layer(lora(16)), packed = layer(options);
  const double weights = kH * kQkv + kH * kH + 3 * kH * kFfn;
  const double moved = weights * (0.5 + 1.0 / 64 + 4.0 / (64 * 256) + kElement);
  CHECK((bytes_of(packed.forward) - bytes_of(plain.forward)).value() == doctest::Approx(moved));
  CHECK((bytes_of(packed.backward_input) - bytes_of(plain.backward_input)).value() ==
        doctest::Approx(moved));
  CHECK(bytes_of(packed.backward_weight) == bytes_of(plain.backward_weight));
  const Bytes held = frozen_weights(packed.frozen, options.optimizer, Precision::Bf16);
  const double norms = 2 * kH;
  CHECK(held.value() == doctest::Approx(weights * (moved / weights - kElement) + norms * kElement));
}

TEST_CASE("modules that are frozen from the start keep nothing and go nowhere back") {
  BuildOptions options{.recompute = Recompute::Full, .frozen_modules = 3};
  const ModelGraph graph = zoo("llama-3-8b", options);
  for (const std::size_t module : {0, 1, 2}) {
    CHECK(weights_of(graph.modules[module]).all == 0);
    CHECK(graph.modules[module].stash == Bytes(0));
    CHECK(graph.modules[module].backward_input.empty());
    CHECK(graph.modules[module].backward_weight.empty());
    CHECK(graph.modules[module].recompute.empty());
    CHECK(graph.modules[module].update.empty());
    CHECK(!graph.modules[module].forward.empty());
  }
  CHECK(parameters_of(graph) == kAll);
  CHECK(trained(graph) ==
        trained(zoo("llama-3-8b")) - graph.modules[0].parameters - 2 * graph.modules[1].parameters);
  CHECK(graph.slice({4096, 0, 8192}).modules[2].stash == Bytes(0));
  CHECK(graph.slice({4096, 0, 8192}).modules[3].stash > Bytes(0));
}

}  // namespace
}  // namespace interlock::adapters_test
