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

TEST_CASE("OpenELM's layers have heads and widths of their own") {
  // Fields of OpenELM-1_1B; its paper, arXiv 2404.14619, counts 1.1 B. Widths by hand: the multiple
  // of 2048 to the nearest 256, so 0.63 x 2048 = 1290 -> 1280 and 2.19 x 2048 = 4485 -> 4608.
  const ModelGraph graph = built(R"({"model_type": "openelm", "ffn_dim_divisor": 256,
      "ffn_multipliers": [0.5, 0.63, 0.76, 0.89, 1.02, 1.15, 1.28, 1.41, 1.54, 1.67, 1.8, 1.93,
          2.06, 2.19, 2.31, 2.44, 2.57, 2.7, 2.83, 2.96, 3.09, 3.22, 3.35, 3.48, 3.61, 3.74, 3.87,
          4.0],
      "ffn_with_glu": true, "head_dim": 64, "max_context_length": 2048, "model_dim": 2048,
      "normalization_layer_name": "rms_norm", "normalize_qk_projections": true,
      "num_gqa_groups": 4, "num_kv_heads": [4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6,
          7, 7, 7, 7, 7, 7, 8, 8, 8, 8],
      "num_query_heads": [16, 16, 16, 20, 20, 20, 20, 20, 20, 20, 24, 24, 24, 24, 24, 24, 24, 24,
          28, 28, 28, 28, 28, 28, 32, 32, 32, 32],
      "num_transformer_layers": 28, "qkv_multipliers": [0.5, 1.0], "rope_freq_constant": 10000,
      "share_input_output_layers": true, "vocab_size": 32000})");
  const int widths[] = {1024, 1280, 1536, 1792, 2048, 2304, 2560, 2816, 3072, 3328,
                        3584, 3840, 4096, 4608, 4608, 5120, 5376, 5632, 5888, 6144,
                        6400, 6656, 6912, 7168, 7424, 7680, 7936, 8192};
  const int layers_of_groups[] = {3, 7, 8, 6, 4};  // with 4, 5, 6, 7 and 8 heads of keys
  std::int64_t sum = 32000 * 2048 + 2048;          // embedding, norm
  for (const int width : widths) sum += 3 * 2048 * width;
  for (int i = 0; i < 5; ++i) {
    const int keys = 4 + i,
              heads = 4 * keys;  // of 64; with output, and norms of the layer and heads
    sum += layers_of_groups[i] * (2048 * 64 * (2 * heads + 2 * keys) + 2 * 2048 + 2 * 64);
  }
  MESSAGE("by hand " << sum);
  CHECK(std::abs(static_cast<double>(sum) - 1.1e9) < 0.05e9);
  CHECK(parameters_of(graph) == sum);
  CHECK(graph.notes.empty());
}

TEST_CASE("Cohere's layers read one norm without biases, and their readout is the embedding") {
  // Aya Expanse 8B; its published weights are 8,028,033,024.
  const std::int64_t h = 4096, f = 14336, keys = 8 * 128, v = 256000;
  const std::int64_t layer = 2 * h * h + 2 * h * keys + 3 * h * f + h;
  const std::string aya = R"({"model_type": "cohere", "hidden_size": 4096, "vocab_size": 256000,
      "num_hidden_layers": 32, "intermediate_size": 14336, "num_attention_heads": 32,
      "num_key_value_heads": 8, "max_position_embeddings": 8192,
      "layer_norm_eps": 1e-5, "logit_scale": 0.125, "rope_theta": 10000, "hidden_act": "silu")";
  const ModelGraph graph = built(aya + "}");
  MESSAGE("embedding " << v * h << " + 32 layers of " << layer << " + norm " << h);
  CHECK(v * h + 32 * layer + h == 8'028'033'024);
  CHECK(parameters_of(graph) == 8'028'033'024);
  CHECK(graph.notes.empty());
  INFO("norms of queries and keys, as in Command R+, have scales of each head");
  CHECK(parameters_of(built(aya + R"(, "use_qk_norm": true})")) ==
        8'028'033'024 + 32 * (32 + 8) * 128);
  INFO("a layer norm with biases has another number for each scale: 32 and the last");
  const auto plain = [](const std::string& biased) {
    return parameters_of(built(R"({"kind": "transformer", "layers": 32, "hidden_size": 4096,
        "sequence_length": 64, "vocab_size": 10, "attention_heads": 32, "parallel_residual": true,
        "shared_norm": true, "norm_bias": )" +
                               biased + "}"));
  };
  CHECK(plain("true") - plain("false") == 33 * 4096);
}

TEST_CASE("a class that is not known may have biases at queries alone") {
  // Seed-OSS 36B; its published weights are 36,151,104,512.
  const std::int64_t h = 5120, f = 27648, q = 80 * 128, keys = 8 * 128, v = 155136;
  const std::int64_t layer = 2 * h * q + 2 * h * keys + 3 * h * f + q + 2 * keys + 2 * h;
  CHECK(2 * v * h + 64 * layer + h == 36'151'104'512);
  CHECK(parameters_of(built(R"({"model_type": "seed_oss", "attention_bias": true,
      "attention_out_bias": false, "mlp_bias": false, "head_dim": 128, "hidden_act": "silu",
      "hidden_size": 5120, "intermediate_size": 27648, "num_attention_heads": 80,
      "num_hidden_layers": 64, "num_key_value_heads": 8, "rms_norm_eps": 1e-6,
      "rope_theta": 10000000.0, "tie_word_embeddings": false, "vocab_size": 155136,
      "sequence_length": 4096})")) == 36'151'104'512);
}

TEST_CASE("a class that has parts without keys is refused by them, in one sentence") {
  // Fields of google/gemma-3n-E4B, as huggingface/transformers @ 01854809 has them
  // (src/transformers/models/gemma3n/configuration_gemma3n.py).
  const JsonValue value = parse_json(R"({"model_type": "gemma3n", "text_config": {
      "model_type": "gemma3n_text", "hidden_size": 2048, "hidden_size_per_layer_input": 256,
      "vocab_size_per_layer_input": 262144, "altup_num_inputs": 4, "laurel_rank": 64,
      "num_kv_shared_layers": 15, "num_hidden_layers": 35, "intermediate_size": 16384}})",
                                     "config.json");
  Diagnostics diagnostics;
  build_model({&value, "/model"}, {}, diagnostics);
  REQUIRE(diagnostics.messages().size() == 1);
  const std::string& told = diagnostics.messages()[0];
  CHECK(told.find("/model/text_config/model_type: models of \"gemma3n_text\" have") !=
        std::string::npos);
  for (const char* part : {"altup_num_inputs", "hidden_size_per_layer_input", "laurel_rank",
                           "num_kv_shared_layers", "activation_sparsity_pattern"}) {
    CHECK_MESSAGE(told.find(part) != std::string::npos, part);
  }
}

TEST_CASE("a configuration that names no length asks for one, whatever it is") {
  const JsonValue value = parse_json(R"({"model_type": "zamba", "rms_norm_eps": 1e-6,
      "hidden_act": "silu", "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
      "num_hidden_layers": 2, "vocab_size": 100})",
                                     "config.json");
  Diagnostics diagnostics;
  build_model({&value, "/model"}, {}, diagnostics);
  REQUIRE(diagnostics.messages().size() == 1);
  CHECK(diagnostics.messages()[0].find("expected it said: --sequence-length 4096") !=
        std::string::npos);
}

}  // namespace
}  // namespace interlock::published_forms_test
