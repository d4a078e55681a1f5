// Classes of configurations whose layers follow rules of their own, and what a file says wrongly.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "base/file.h"
#include "models/config_types.h"
#include "models/unmodelled_types.h"
#include "tests/models/built.h"

namespace interlock::config_classes_test {
namespace {

std::vector<std::string> mistakes(const std::string& text) {
  const JsonValue value = parse_json(text, "s.json");
  Diagnostics diagnostics;
  build_model({&value, "/model"}, {}, diagnostics);
  return diagnostics.messages();
}

/// The weights of blocks alone: without the embedding, and the last norm with the readout.
std::vector<std::int64_t> blocks_of(const std::string& text) {
  const ModelGraph graph = built(text);
  std::vector<std::int64_t> weights;
  for (std::size_t i = 1; i + 1 < graph.modules.size(); ++i) {
    weights.push_back(graph.modules[i].parameters);
  }
  return weights;
}

double forward_flops(const ModelGraph& graph, std::size_t block) {
  double flops = 0;
  for (const Work& work : graph.modules[block + 1].forward) flops += work.flops.value();
  return flops;
}

TEST_CASE("experts begin, end and repeat where ERNIE's fields say") {
  const auto ernie = [](const std::string& rule) {
    return blocks_of(R"({"base": {"model_type": "ernie4_5_moe", "hidden_size": 64,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96,
        "moe_intermediate_size": 32, "moe_num_experts": 4, "moe_k": 2, "vocab_size": 10,
        "num_hidden_layers": 6)" +
                     rule + R"(}, "sequence_length": 8})");
  };
  const std::int64_t attention = 64 * 64 + 2 * 64 * 32 + 64 * 64 + 2 * 64;
  const std::int64_t dense = attention + 3 * 64 * 96;
  const std::int64_t experts = attention + (4 + 2) * 3 * 64 * 32 + 64 * 4 + 4;
  CHECK(ernie("") == std::vector{dense, experts, experts, experts, experts, experts});
  CHECK(ernie(R"(, "moe_layer_end_index": 3, "moe_layer_interval": 2)") ==
        std::vector{dense, experts, dense, experts, dense, dense});
}

TEST_CASE("Granite's hybrids have Mamba 2 or attention, and an MLP or experts behind either") {
  const auto granite = [](const std::string& more) {
    return blocks_of(R"({"base": {"model_type": "granitemoehybrid", "hidden_size": 64,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 32,
        "shared_intermediate_size": 96, "vocab_size": 10, "num_hidden_layers": 2,
        "mamba_n_heads": 8, "mamba_d_state": 16, "mamba_d_conv": 4, )" +
                     more + R"(}, "sequence_length": 8})");
  };
  const std::string both = R"("layer_types": ["mamba", "attention"], )";
  // 8 heads of 2 x 64 / 8 = 16; z, x, B, C and a step a head; kernels of 4 with biases over x, B
  // and C; three numbers a head; a gated norm.
  const std::int64_t mamba =
      64 * (2 * 128 + 2 * 16 + 8) + (4 + 1) * (128 + 2 * 16) + 3 * 8 + 128 + 128 * 64;
  const std::int64_t attention = 2 * 64 * 64 + 2 * 64 * 32;
  const std::int64_t shared = 3 * 64 * 96 + 2 * 64;
  const std::int64_t experts = 4 * 3 * 64 * 32 + 64 * 4;
  CHECK(granite(both + R"("num_local_experts": 0)") ==
        std::vector{mamba + shared, attention + shared});
  CHECK(granite(both + R"("num_local_experts": 4)") ==
        std::vector{mamba + shared + experts, attention + shared + experts});
  INFO("sizes of a mixer that no layer has are no mistake");
  CHECK(granite(R"("layer_types": ["attention", "attention"], "num_local_experts": 0)") ==
        std::vector{attention + shared, attention + shared});
  CHECK(granite(R"("num_local_experts": 0)") == std::vector{mamba + shared, mamba + shared});
}

TEST_CASE("newer hybrids of Nemotron name their layers, older ones have letters") {
  const auto nemotron = [](const std::string& layers) {
    return blocks_of(R"({"base": {"model_type": "nemotron_h", "hidden_size": 64,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
        "intermediate_size": 96, "moe_intermediate_size": 32, "n_routed_experts": 4,
        "num_experts_per_tok": 2, "vocab_size": 10, "mamba_num_heads": 8, "mamba_head_dim": 16, )" +
                     layers + R"(}, "sequence_length": 8})");
  };
  CHECK(nemotron(R"("layers_block_type": ["mamba", "moe", "attention", "mlp"])") ==
        nemotron(R"("num_hidden_layers": 4, "hybrid_override_pattern": "ME*-")"));
  INFO("names say how many layers there are, too");
  CHECK(nemotron(R"("layers_block_type": ["mamba", "moe", "attention", "mlp", "moe"])").size() ==
        5);
  const auto later = mistakes(R"({"model_type": "nemotron_h", "num_hidden_layers": 1,
      "layers_block_type": ["mamba"], "mtp_layers_block_type": ["attention", "moe"],
      "sequence_length": 8})");
  REQUIRE(!later.empty());
  CHECK(later.front().find("/mtp_layers_block_type") != std::string::npos);
  const auto wrong = mistakes(R"({"model_type": "nemotron_h", "num_hidden_layers": 1,
      "layers_block_type": ["conv"], "sequence_length": 8})");
  REQUIRE(!wrong.empty());
  CHECK(wrong.front() ==
        "s.json:2: /model/layers_block_type: unknown layer \"conv\"; expected mamba, attention, "
        "mlp or moe");
}

TEST_CASE("letters say which layers have windows, and only those turn positions") {
  const auto exaone = [](const std::string& pattern) {
    return built(R"({"base": {"model_type": "exaone4", "num_hidden_layers": 4,
        "sliding_window": 64, "sliding_window_pattern": )" +
                 pattern + R"(}, "sequence_length": 1024})");
  };
  const ModelGraph letters = exaone(R"("LLGL")"), number = exaone("4");
  CHECK(forward_flops(letters, 0) < forward_flops(letters, 2));
  CHECK(forward_flops(letters, 3) == forward_flops(letters, 0));
  CHECK(forward_flops(number, 3) == forward_flops(letters, 2));
  CHECK(forward_flops(number, 2) == forward_flops(letters, 0));
  INFO("one kernel fewer where nothing is turned");
  const auto kernels = [](const ModelGraph& graph, std::size_t block) {
    return graph.modules[block + 1].forward.size();
  };
  CHECK(kernels(letters, 2) < kernels(letters, 0));
}

TEST_CASE("OPT's norms come behind the sums in one size, whose words have another width") {
  const auto opt = [](const std::string& more) {
    return R"({"model_type": "opt", "hidden_size": 64, "ffn_dim": 96, "num_hidden_layers": 1,
        "num_attention_heads": 4, "vocab_size": 10, "max_position_embeddings": 16)" +
           more + "}";
  };
  const std::int64_t block = 4 * (64 * 64 + 64) + 2 * 64 * 96 + 96 + 64 + 4 * 64;
  CHECK(blocks_of(opt("")) == std::vector{block});
  CHECK(parameters_of(built(opt(""))) == 10 * 64 + 16 * 64 + block + 2 * 64);
  INFO("no norm behind the last block");
  CHECK(parameters_of(built(opt(R"(, "do_layer_norm_before": false)"))) ==
        10 * 64 + 16 * 64 + block);
  const auto narrow = mistakes(opt(R"(, "word_embed_proj_dim": 32)"));
  REQUIRE(narrow.size() == 1);
  CHECK(narrow[0].find("/model/word_embed_proj_dim: words of another width") != std::string::npos);
}

TEST_CASE("likes of BERT see both sides of a word, and predict hidden ones") {
  // Words, places and types, a norm; blocks of four matrices and two of four times the width, each
  // with biases, and two norms; a dense layer with a norm, and a bias for each word.
  const auto weights = [](std::int64_t words, std::int64_t places, std::int64_t types,
                          std::int64_t layers, std::int64_t width) {
    const std::int64_t block = 4 * (width * width + width) + 2 * 4 * width * width + 5 * width;
    return (words + places + types + 2) * width + layers * (block + 4 * width) + width * width +
           width + 2 * width + words;
  };
  const ModelGraph roberta = built(R"({"base": {"model_type": "roberta", "architectures":
      ["RobertaForMaskedLM"], "max_position_embeddings": 514, "type_vocab_size": 1},
      "sequence_length": 512})");
  CHECK(parameters_of(roberta) == weights(50265, 514, 1, 12, 768));
  CHECK(parameters_of(roberta) == 124'697'433);
  CHECK(parameters_of(built(R"({"base": {"model_type": "xlm-roberta", "hidden_size": 1024,
      "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
      "vocab_size": 250002, "max_position_embeddings": 514, "type_vocab_size": 1},
      "sequence_length": 512})")) == weights(250002, 514, 1, 24, 1024));
  CHECK(parameters_of(built(R"({"model_type": "distilbert", "dim": 768, "hidden_dim": 3072,
      "n_heads": 12, "n_layers": 6, "activation": "gelu", "tie_weights_": true,
      "sinusoidal_pos_embds": false})")) == weights(30522, 512, 0, 6, 768));
  const ModelGraph causal = built(R"({"base": {"model_type": "gpt2"}, "sequence_length": 512})");
  CHECK(forward_flops(roberta, 0) > forward_flops(causal, 0));  // no pair is masked
}

TEST_CASE("a field may say once more that heads are normed, and not of a class without") {
  CHECK(
      mistakes(R"({"model_type": "gemma3_text", "qk_norm": true, "sequence_length": 8})").empty());
  CHECK(mistakes(R"({"model_type": "llama", "qk_norm": true})").size() == 1);
}

TEST_CASE("ratios of DeepSeek-V4 that no layer has are refused once") {
  const auto said = [](const std::string& ratios) {
    return mistakes(R"({"base": {"model_type": "deepseek_v4", "num_hidden_layers": 3,
        "compress_ratios": )" +
                    ratios + R"(}, "sequence_length": 64})");
  };
  CHECK(said("[0, 128, 4, 0]").empty());
  CHECK(said("[0, 7, 9, 4]") ==
        std::vector<std::string>{"s.json:2: /model/base/compress_ratios: layer 1 has 7; expected "
                                 "0 or one of \"compress_rates\", 4 and 128"});
  CHECK(said("[0, 4]") ==
        std::vector<std::string>{"s.json:2: /model/base/compress_ratios: 2 entries for 3 layers; "
                                 "expected one for each"});
}

TEST_CASE("DBRX and MPT say in parts what heads and MLPs are") {
  const auto dbrx = parameters_of(built(R"({"base": {"model_type": "dbrx", "d_model": 6144,
      "n_heads": 48, "n_layers": 40, "max_seq_len": 32768, "vocab_size": 100352, "emb_pdrop": 0.0,
      "attn_config": {"kv_n_heads": 8, "rope_theta": 500000},
      "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}},
      "sequence_length": 8})"));
  const std::int64_t h = 6144, experts = 16 * 3 * h * 10752 + 16 * h;
  CHECK(dbrx == 2 * 100352 * h + 40 * (2 * h * h + 2 * h * 8 * 128 + experts + 2 * h) + h);
  CHECK(dbrx == 131'596'523'520);
  const std::string mpt = R"({"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32,
      "vocab_size": 50432, "expansion_ratio": 4, "attn_config": {"alibi": true})";
  const std::int64_t w = 4096;
  CHECK(parameters_of(built(mpt + R"(, "no_bias": true})")) ==
        50432 * w + 32 * (12 * w * w + 2 * w) + w);
  REQUIRE(mistakes(mpt + R"(, "no_bias": false})").size() == 1);
  INFO("mistakes in parts have their place");
  const auto wrong = mistakes(R"({"model_type": "llama",
      "ffn_config": {"moe_num_experts": 8, "sparkle": 1}})");
  REQUIRE(wrong.size() == 1);
  CHECK(wrong[0].starts_with("s.json:2: /model/ffn_config/moe_num_experts: 8 shapes a model"));
}

TEST_CASE("the part that reads text is found by each of its names") {
  const std::string text = R"({"model_type": "qwen2", "num_hidden_layers": 2})";
  const auto whole = [&](const std::string& part) {
    return built(R"({"base": {"model_type": "internvl_chat", ")" + part + R"(": )" + text +
                 R"(, "vision_config": {"model_type": "intern_vit_6b", "hidden_size": 64},
                 "downsample_ratio": 0.5}, "sequence_length": 8})");
  };
  const auto plain = parameters_of(built(R"({"base": )" + text + R"(, "sequence_length": 8})"));
  for (const char* part : {"text_config", "llm_config", "language_config"}) {
    CAPTURE(part);
    const ModelGraph graph = whole(part);
    CHECK(parameters_of(graph) == plain);
    REQUIRE(graph.notes.size() == 2);
    CHECK(graph.notes[1] == "the part that reads images (vision_config) is left out");
  }
}

TEST_CASE("all fields that nothing is known of are one mistake") {
  const auto all = mistakes(R"({"model_type": "new", "a1": 1, "a2": 1, "a3": 1, "a4": 1, "a5": 1,
      "a6": 1, "a7": 1, "a8": 1})");
  REQUIRE(!all.empty());
  CHECK(all[0] ==
        "s.json:1: /model/model_type: the model_type \"new\" is unknown, and nothing is known here "
        "of \"a1\", \"a2\", \"a3\", \"a4\", \"a5\", \"a6\" and 2 others; expected them taken out "
        "if neither time nor memory follow from them, or the model in keys of \"kind\": "
        "\"transformer\"; docs/models.md lists each model_type that is known");
  CHECK(all.size() == 1);
}

TEST_CASE("classes whose models cannot be written are refused in one sentence") {
  for (const UnmodelledType& type : unmodelled_types()) {
    const auto all = mistakes(R"({"model_type": ")" + std::string(type.name) +
                              R"(", "index_topk": 3, "sparkle": 3})");
    REQUIRE(all.size() == 1);
    CHECK(all[0].find(std::string(type.lacks) + ", which no key says") != std::string::npos);
  }
}

TEST_CASE("numbers that Python writes and JSON lacks stand for nothing, and lines stay") {
  const auto path = std::filesystem::temp_directory_path() / "interlock-infinity.json";
  const auto told = [&](const std::string& more) {
    write_file(path.string(), "{\"model_type\": \"nemotron_h\",\n\"time_step_limit\": [0.0,\n" +
                                  more + R"(], "architectures": ["NaN \" Infinity"],)" +
                                  "\n\"sequence_length\": 8, \"hidden_size\": \"x\"}");
    return mistakes('"' + path.string() + '"');
  };
  for (const char* number : {"Infinity", "-Infinity", "NaN"}) {
    CAPTURE(number);
    const auto all = told(number);
    REQUIRE(!all.empty());
    CHECK(all[0].find("interlock-infinity.json:4: /hidden_size") != std::string::npos);
  }
  CHECK(told("Infinite")[0].find("malformed JSON") != std::string::npos);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace interlock::config_classes_test
