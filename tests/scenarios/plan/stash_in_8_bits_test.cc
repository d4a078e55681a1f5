// Stash in 8 and in 4 bits: what products keep of their inputs, counted by hand for each layer.
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "tests/scenarios/plan/small_run.h"

namespace interlock::stash_in_8_bits_test {
namespace {

constexpr double kTokens = 2 * 128, kHidden = 256, kAttention = 4 * 64, kInner = 1024;

/// Returns what the first block of a model with `keys` keeps less where its framework keeps the
/// inputs of products in 8 bits.
double saved(const std::string& keys, const Overrides& more = {}) {
  const auto stash = [&](const std::string& framework) {
    Overrides all = {R"(model={"kind": "transformer", "layers": 2, "hidden_size": 256,
                         "attention_heads": 4, "sequence_length": 128, "vocab_size": 1024,
                         "ffn_hidden_size": 1024, "gated_mlp": true, )" +
                         keys + "}",
                     "cluster=dgx-h100", "training.precision=fp8",
                     "training.framework=" + framework};
    all.insert(all.end(), more.begin(), more.end());
    return run(small_run(all)).plan.question.training().graph.modules.at(1).stash.value();
  };
  CHECK(stash("{}") == stash(R"({"fp8_inputs": "training"})"));
  return stash("{}") - stash(R"({"fp8_inputs": "fp8"})");
}

TEST_CASE("a dense block keeps a byte less of what each product reads, and two more of attention") {
  INFO("projections, both products of the MLP; what attention made is kept in 16 and in 8 bits");
  CHECK(saved(R"("attention": "fused")") == kTokens * (kHidden - kAttention + kHidden + kInner));
  INFO("the backward of stored scores does not read what attention made");
  CHECK(saved(R"("attention": "materialised")") ==
        kTokens * (kHidden + kAttention + kHidden + kInner));
}

TEST_CASE("in training of 4 bits products keep these, with a byte of scales for 16 elements") {
  const double narrow = 0.5 + 1.0 / 16, less = 2 - narrow;
  CHECK(saved(R"("attention": "fused")", {"cluster=dgx-b200", "training.precision=fp4"}) ==
        kTokens * (less * kHidden - narrow * kAttention + less * (kHidden + kInner)));
}

TEST_CASE("a block that computes all again keeps its input as before") {
  CHECK(saved(R"("attention": "fused")", {"training.recompute=full"}) == 0);
}

TEST_CASE("other precisions keep what they kept") {
  const auto keys = R"("attention": "fused")";
  CHECK(saved(keys, {"training.precision=bf16"}) == 0);
}

TEST_CASE("experts of all tokens have a copy of their own in 8 bits beside the router's") {
  const double choices = 2, width = 128, shared = 192;
  const double attention = kHidden - kAttention;
  const double routed = choices * (kHidden + width);
  CHECK(saved(R"("attention": "fused", "experts": 8, "experts_per_token": 2, "shared_experts": 1,
                 "shared_expert_ffn_hidden_size": 192, "expert_ffn_hidden_size": 128)") ==
        kTokens * (attention + routed - kHidden + shared));
}

TEST_CASE("each way down to a latent vector has a copy of its own in 8 bits") {
  const double queries = 64, keys = 32, values = 4 * 48;
  CHECK(saved(
            R"("attention": "fused", "positions": "rotary",
                 "latent_attention": {"query_rank": 64, "kv_rank": 32,
                 "head_size": 64, "rotary_head_size": 16, "value_head_size": 48})") ==
        kTokens * (kHidden - kHidden + queries + keys - values + kHidden + kInner));
}

TEST_CASE("a device of a tensor group keeps a byte less of its parts") {
  // With the sequence divided, too, every input is an eighth.
  CHECK(saved(R"("attention": "fused")", {R"(parallel={"tensor": 8, "sequence_parallel": true})",
                                          "model.attention_heads=8"}) ==
        kTokens / 8 * (kHidden - kAttention + kHidden + kInner));
}

/// Returns what the first block keeps less where activations keep their input in 8 bits.
double saved_by_activations(const std::string& keys, const Overrides& more = {}) {
  const auto stash = [&](const std::string& format) {
    Overrides all = {R"(model={"kind": "transformer", "layers": 2, "hidden_size": 256,
                         "attention_heads": 4, "sequence_length": 128, "vocab_size": 1024,
                         "ffn_hidden_size": 1024, )" +
                         keys + "}",
                     "cluster=dgx-h100", "training.activation_inputs=" + format};
    all.insert(all.end(), more.begin(), more.end());
    return run(small_run(all)).plan.question.training().graph.modules.at(1).stash.value();
  };
  return stash("training") - stash("fp8");
}

TEST_CASE("activations keep a byte of each element of their input, in any precision") {
  CHECK(saved_by_activations(R"("gated_mlp": true)") == kTokens * 2 * kInner);
  CHECK(saved_by_activations(R"("gated_mlp": false)") == kTokens * kInner);
  INFO("fp32 has four");
  CHECK(saved_by_activations(R"("gated_mlp": false)", {"training.precision=fp32"}) ==
        kTokens * 3 * kInner);
  INFO("two experts of each token, of width 128");
  CHECK(saved_by_activations(R"("gated_mlp": true, "experts": 8, "experts_per_token": 2,
                                "expert_ffn_hidden_size": 128)") == kTokens * 2 * 2 * 128);
  CHECK(saved_by_activations(R"("gated_mlp": true)", {"training.recompute=full"}) == 0);
}

TEST_CASE("the forward writes those bytes, and the backward reads them for wider ones") {
  const auto bytes = [](const std::string& format) {
    const ScenarioResult result = run(small_run({"training.activation_inputs=" + format}));
    const Module& block = result.plan.question.training().graph.modules.at(1);
    std::pair<double, double> moved;
    for (const Work& work : block.forward) moved.first += work.bytes.value();
    for (const Work& work : block.backward_input) moved.second += work.bytes.value();
    return moved;
  };
  const auto wide = bytes("training"), narrow = bytes("fp8");
  CHECK(narrow.first - wide.first == doctest::Approx(kTokens * kInner));
  CHECK(wide.second - narrow.second == doctest::Approx(kTokens * kInner));
}

}  // namespace
}  // namespace interlock::stash_in_8_bits_test
