// Experts that read and make latents: weights, bytes on their way and products, counted by hand.
// SPDX-License-Identifier: Apache-2.0
#include "tests/models/built.h"

namespace interlock::latent_experts_test {
namespace {

constexpr double kTokens = 32, kHidden = 16, kLatent = 4, kWidth = 8, kExperts = 4, kChoices = 2;

Module block(const std::string& more, const BuildOptions& options = {}) {
  return built(R"({"kind": "transformer", "layers": 1, "hidden_size": 16, "attention_heads": 4,
                   "vocab_size": 24, "sequence_length": 32, "bias": false, "experts": 4,
                   "experts_per_token": 2, "expert_ffn_hidden_size": 8)" +
                   more + "}",
               options)
      .modules[1];
}

const std::string kLatents = R"(, "expert_latent_size": 4)";

/// Returns the bytes of the exchanges of `kind` along `axis`.
double bytes_of(const std::vector<Exchange>& exchanges, CollectiveKind kind, MeshAxis axis) {
  double bytes = 0;
  for (const Exchange& one : exchanges) {
    if (one.kind == kind && one.axis == axis) bytes += one.bytes.value() * one.count;
  }
  return bytes;
}

TEST_CASE("experts have narrower matrices, and a layer two products more") {
  const Module wide = block(""), narrow = block(kLatents);
  const double less = kExperts * 2 * (kHidden - kLatent) * kWidth, more = 2 * kHidden * kLatent;
  CHECK(static_cast<double>(wide.expert_parameters - narrow.expert_parameters) == less);
  CHECK(static_cast<double>(wide.parameters - narrow.parameters) == less - more);
  INFO("two flops for each weight and row: two experts of a token, and each token once");
  CHECK((flops_of(wide.forward) - flops_of(narrow.forward)).value() ==
        2 * kTokens * (kChoices * 2 * (kHidden - kLatent) * kWidth - 2 * kHidden * kLatent));
}

TEST_CASE("experts of all tokens read the tokens") {
  const std::string shared = R"(, "shared_experts": 1)";
  const Module without = block(kLatents), with = block(kLatents + shared);
  CHECK(with.parameters - without.parameters == 2 * 16 * 8);
  CHECK((flops_of(with.forward) - flops_of(without.forward)).value() ==
        2 * kTokens * 2 * kHidden * kWidth);
}

TEST_CASE("what passes between devices is as wide as the latents, both ways") {
  BuildOptions options;
  options.sharding.expert = 2;
  for (const bool latent : {false, true}) {
    const double width = latent ? kLatent : kHidden;
    const Module layer = block(latent ? kLatents : "", options);
    for (const auto* exchanges : {&layer.forward_exchanges, &layer.backward_input_exchanges}) {
      INFO("there and back, two bytes an element");
      CHECK(bytes_of(*exchanges, CollectiveKind::AllToAll, MeshAxis::Expert) ==
            2 * kTokens * kChoices * width * 2);
    }
  }
}

TEST_CASE("tensor devices each have both products whole, and add up latents") {
  BuildOptions options;
  options.sharding.tensor = 2;
  const auto more = [&] {
    return block(kLatents, options).parameters - block("", options).parameters;
  };
  CHECK(more() == 2 * 16 * 4 - 4 * 2 * (16 - 4) * 8 / 2);
  const auto summed = [&](const std::string& keys) {
    return bytes_of(block(keys, options).forward_exchanges, CollectiveKind::AllReduce,
                    MeshAxis::Tensor);
  };
  INFO("of attention, of the tokens' width, and of what experts made");
  CHECK(summed("") - summed(kLatents) == kTokens * (kHidden - kLatent) * 2);
  options.sharding.sequence_parallel = true;
  INFO("each has half of the rows: all flops of a layer are divided but the router's batch");
  const auto flops = [&] {
    return (flops_of(block(kLatents, options).forward) - flops_of(block("", options).forward))
        .value();
  };
  CHECK(flops() ==
        -2 * kTokens / 2 * (kChoices * 2 * (kHidden - kLatent) * kWidth - 2 * kHidden * kLatent));
}

TEST_CASE("latents are kept for the gradients of what reads them, and tokens once") {
  const auto stash = [](const std::string& keys) { return block(keys).stash.value(); };
  INFO(
      "of each choice, what the first product reads and the sum weighs, and of each token the sum");
  CHECK(stash("") - stash(kLatents) ==
        2 * kTokens * (2 * kChoices * (kHidden - kLatent) - kLatent));
}

}  // namespace
}  // namespace interlock::latent_experts_test
