// Models of several forms: weights to the unit against published counts.
// SPDX-License-Identifier: Apache-2.0
//
// Sources of the counts. Gemma 2: its report, arXiv 2408.00118, table 2. Mamba: its authors, issue
// 48 of state-spaces/mamba. Qwen3-Next, gpt-oss and OLMo 2: the metadata of the published weights,
// as other repositories list them (gpt-oss: arXiv 2508.10925, table 1 has them rounded).
// DeepSeek-V3's further block: README_WEIGHTS.md of deepseek-ai/DeepSeek-V3.
#include "tests/models/built.h"

namespace interlock::published_forms_test {
namespace {

/// A decoder as most are today, with `more` keys.
std::string decoder(const std::string& more) {
  return R"({"kind": "transformer", "attention": "fused", "norm": "rmsnorm", "bias": false,
            "positions": "rotary", "gated_mlp": true, "sequence_length": 4096, )" +
         more + "}";
}

TEST_CASE("Gemma 2 has norms on both sides of its branches and windows in every second layer") {
  const ModelGraph graph = built(decoder(R"("layers": 26, "hidden_size": 2304,
      "attention_heads": 8, "kv_heads": 4, "head_size": 256, "ffn_hidden_size": 9216,
      "vocab_size": 256000, "norm_position": "both",
      "layer_pattern": [{"sliding_window": 4096}, {}])"));
  CHECK(parameters_of(graph) == 2'024'517'888 + 256000LL * 2304);
}

TEST_CASE("OLMo 2 norms what its branches put out, and all heads of queries and keys together") {
  const ModelGraph graph = built(decoder(R"("layers": 32, "hidden_size": 4096,
      "attention_heads": 32, "ffn_hidden_size": 11008, "vocab_size": 100352,
      "norm_position": "branch", "qk_norm": "whole", "tied_embeddings": false)"));
  CHECK(parameters_of(graph) == 7'298'617'344);
}

TEST_CASE("gpt-oss has sinks, windows of 128 tokens, and biases in its router and experts") {
  const auto of = [](int layers, int experts) {
    return built(decoder("\"layers\": " + std::to_string(layers) +
                         ", \"experts\": " + std::to_string(experts) + R"(, "mlp_bias": true,
      "qkv_bias": true, "projection_bias": true, "hidden_size": 2880, "attention_heads": 64,
      "kv_heads": 8, "head_size": 64,
      "experts_per_token": 4, "expert_ffn_hidden_size": 2880, "router_bias": true,
      "attention_sinks": true, "vocab_size": 201088, "tied_embeddings": false,
      "layer_pattern": [{"sliding_window": 128}, {}])"));
  };
  CHECK(parameters_of(of(24, 32)) == 20'914'757'184);
  CHECK(parameters_of(of(36, 128)) == 116'829'156'672);
}

TEST_CASE("Mamba has no attention, no MLP and no positions") {
  const auto of = [](int layers, int hidden) {
    return built(R"({"kind": "transformer", "attention": "mamba", "mamba": {}, "ffn": "none",
        "norm": "rmsnorm", "bias": false, "positions": "none", "vocab_size": 50280,
        "sequence_length": 2048, "layers": )" +
                 std::to_string(layers) + ", \"hidden_size\": " + std::to_string(hidden) + "}");
  };
  CHECK(parameters_of(of(24, 768)) == 129'135'360);
  CHECK(parameters_of(of(64, 2560)) == 2'768'345'600);
}

std::string qwen3_next(const std::string& more) {
  return decoder(R"("layers": 48, "hidden_size": 2048, "attention_heads": 16, "kv_heads": 2,
      "head_size": 256, "attention_gate": true, "qk_norm": true, "vocab_size": 151936,
      "experts": 512, "experts_per_token": 10, "expert_ffn_hidden_size": 512,
      "shared_experts": 1, "shared_expert_gate": true, "tied_embeddings": false,
      "layer_pattern": [{"repeat": 3, "attention": "gated-delta",
                         "gated_delta": {"key_heads": 16, "value_heads": 32}}, {}])" +
                 more);
}

TEST_CASE("Qwen3-Next has three gated delta layers for each of attention, and one more block") {
  const std::int64_t plain = parameters_of(built(qwen3_next("")));
  const std::int64_t whole =
      parameters_of(built(qwen3_next(R"(, "multi_token_prediction": {"layers": 1})")));
  MESSAGE("without the block that predicts one token more " << plain << ", with it " << whole);
  CHECK(whole == 81'324'862'720);
}

TEST_CASE("DeepSeek-V3's block for one token more has 11.5 G weights of its own") {
  const std::int64_t plain = parameters_of(zoo("deepseek-v3"));
  const std::int64_t whole =
      parameters_of(built(R"({"base": "deepseek-v3", "multi_token_prediction": {"layers": 1}})"));
  // Two norms and a projection, the layer before the readout, and the norm behind it.
  const std::int64_t attention =
      7168 * 1536 + 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 + 512 * 128 * 256 + 128 * 128 * 7168;
  const std::int64_t experts = 257LL * 3 * 7168 * 2048 + 256 * 7168 + 256;
  CHECK(whole - plain == 3 * 7168 + 2 * 7168 * 7168 + attention + 2 * 7168 + experts);
  CHECK(static_cast<double>(whole - plain) == doctest::Approx(11.5e9).epsilon(0.01));
}

}  // namespace
}  // namespace interlock::published_forms_test
