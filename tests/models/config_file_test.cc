// Configurations of Hugging Face: published counts of weights, class defaults, what is refused.
// SPDX-License-Identifier: Apache-2.0
//
// Each count is derived here once more, tensor by tensor as the published files list them. Llama 2,
// Mistral, Mixtral, Qwen, GPT-NeoX, BERT and ViT publish theirs to the unit, as the metadata of
// their weights; they are recalled, and the derivation says whether memory is right.
#include <filesystem>
#include <sstream>

#include "base/file.h"
#include "models/build_model.h"
#include "models/config_types.h"
#include "tests/models/built.h"
#include "tests/support/model_flops.h"

namespace interlock::config_file_test {
namespace {

using Count = std::int64_t;

/// Weights of a gated MLP, three matrices.
Count gated(Count hidden, Count width) { return 3 * hidden * width; }
/// Counts the weights of queries, keys, values and output, without biases.
Count attention(Count hidden, Count heads, Count kv_heads, Count size) {
  return hidden * size * (2 * heads + 2 * kv_heads);
}

/// Sums of the terms of a model, which it prints.
struct Sum {
  Count total = 0;
  std::ostringstream terms;
  Sum& add(const char* name, Count count, Count times = 1) {
    total += count * times;
    terms << (terms.str().empty() ? "" : " + ") << name << ' ';
    if (times > 1) terms << times << " x ";
    terms << count;
    return *this;
  }
};

void check_count(const std::string& model, const Sum& sum, Count published) {
  MESSAGE(model << ": " << sum.terms.str() << " = " << sum.total << "; published " << published);
  CHECK(sum.total == published);
  CHECK(parameters_of(zoo(model)) == published);
}

TEST_CASE("dense decoders have the weights of the published files") {
  check_count("llama-2-7b",
              Sum()
                  .add("embedding and readout", 32000 * 4096, 2)
                  .add("layers", attention(4096, 32, 32, 128) + gated(4096, 11008) + 2 * 4096, 32)
                  .add("norm", 4096),
              6'738'415'616);
  check_count("mistral-7b",
              Sum()
                  .add("embedding and readout", 32000 * 4096, 2)
                  .add("layers", attention(4096, 32, 8, 128) + gated(4096, 14336) + 2 * 4096, 32)
                  .add("norm", 4096),
              7'241'732'096);
  check_count("qwen2-7b",
              Sum()
                  .add("embedding and readout", 152064 * 3584, 2)
                  .add("layers", attention(3584, 28, 4, 128) + gated(3584, 18944) + 2 * 3584, 28)
                  .add("biases of queries, keys, values", (28 + 4 + 4) * 128, 28)
                  .add("norm", 3584),
              7'615'616'512);
  check_count("qwen2.5-72b",
              Sum()
                  .add("embedding and readout", Count{152064} * 8192, 2)
                  .add("layers", attention(8192, 64, 8, 128) + gated(8192, 29568) + 2 * 8192, 80)
                  .add("biases of queries, keys, values", (64 + 8 + 8) * 128, 80)
                  .add("norm", 8192),
              72'706'203'648);
  check_count("qwen3-8b",
              Sum()
                  .add("embedding and readout", 151936 * 4096, 2)
                  .add("layers", attention(4096, 32, 8, 128) + gated(4096, 12288) + 2 * 4096, 36)
                  .add("norms of queries and keys", 2 * 128, 36)
                  .add("norm", 4096),
              8'190'735'360);
  const Count h = 6144, f = 24576;
  check_count("gpt-neox-20b",
              Sum()
                  .add("embedding and readout", 50432 * h, 2)
                  .add("layers", 4 * h * h + 4 * h + 2 * h * f + f + h + 4 * h, 44)
                  .add("norm", 2 * h),
              20'554'567'680);
}

TEST_CASE("encoders have the weights of the published files") {
  const Count h = 768, f = 3072, layer = 4 * h * h + 4 * h + 2 * h * f + f + h + 4 * h;
  const Count body = (30522 + 512 + 2) * h + 2 * h + 12 * layer;
  MESSAGE("BERT-base with its pooler, without a head: " << body + h * h + h);
  CHECK(body + h * h + h == 109'482'240);
  check_count("bert-base",
              Sum()
                  .add("tables of words, places, types", (30522 + 512 + 2) * h)
                  .add("their norm", 2 * h)
                  .add("layers", layer, 12)
                  .add("transform", h * h + h + 2 * h)
                  .add("bias of words", 30522),
              109'514'298);
  const ModelGraph classes = built(R"({"model_type": "bert",
      "architectures": ["BertForSequenceClassification"]})");
  CHECK(parameters_of(classes) == body + h * h + h + 2 * h + 2);  // 109,483,778
  check_count("vit-b-16",
              Sum()
                  .add("patches", 3 * 16 * 16 * h + h)
                  .add("first token and places", h + 197 * h)
                  .add("layers", layer, 12)
                  .add("norm", 2 * h)
                  .add("classes", 1000 * h + 1000),
              86'567'656);
}

/// A layer of DeepSeek's attention, with its two norms and those of the block.
Count latent_layer(Count h, Count heads) {
  const Count queries = h * 1536 + 1536 + 1536 * heads * (128 + 64);
  const Count keys = h * (512 + 64) + 512 + 512 * heads * (128 + 128);
  return queries + keys + heads * 128 * h + 2 * h;
}

TEST_CASE("DeepSeek-V2 has 236 G weights, of which a token uses 21 G") {
  const Count h = 5120, expert = gated(h, 1536);
  const Sum sum = [&] {
    Sum all;
    all.add("embedding and readout", 102400 * h, 2)
        .add("attention and norms", latent_layer(h, 128), 60)
        .add("dense", gated(h, 12288))
        .add("experts", 162 * expert + 160 * h, 59)
        .add("norm", h);
    return all;
  }();
  check_count("deepseek-v2", sum, 235'741'434'880);
  const Count used = sum.total - (160 - 6) * expert * 59;
  CHECK(static_cast<double>(used) == doctest::Approx(21e9).epsilon(0.03));
}

TEST_CASE("DeepSeek-V2-Lite has 15.7 G weights") {
  const Count h = 2048, keys = h * (512 + 64) + 512 + 16 * (128 + 128) * Count{512};
  Sum all;
  all.add("embedding and readout", 102400 * h, 2)
      .add("attention and norms", h * 16 * (128 + 64) + keys + 16 * 128 * h + 2 * h, 27)
      .add("dense", gated(h, 10944))
      .add("experts", 66 * gated(h, 1408) + 64 * h, 26)
      .add("norm", h);
  check_count("deepseek-v2-lite", all, 15'706'484'224);
}

TEST_CASE("DeepSeek-V3 has 671 G weights, of which a token uses 37 G") {
  const Count h = 7168, expert = gated(h, 2048);
  const Sum sum = [&] {
    Sum all;
    all.add("embedding and readout", 129280 * h, 2)
        .add("attention and norms", latent_layer(h, 128), 61)
        .add("dense", gated(h, 18432), 3)
        .add("experts", 257 * expert + 256 * h, 58)
        .add("biases of routers", 256, 58)
        .add("norm", h);
    return all;
  }();
  check_count("deepseek-v3", sum, 671'026'419'200);
  const Count used = sum.total - (256 - 8) * expert * 58;
  MESSAGE("used by a token: " << used);
  CHECK(static_cast<double>(used) == doctest::Approx(37e9).epsilon(0.02));
}

TEST_CASE("mixtures of Qwen have the weights of the published files") {
  const Count h = 2048, layer = attention(h, 32, 4, 128) + 2 * 128 + 2 * h;
  check_count("qwen3-30b-a3b",
              Sum()
                  .add("embedding and readout", 151936 * h, 2)
                  .add("layers", layer + 128 * gated(h, 768) + 128 * h, 48)
                  .add("norm", h),
              30'532'122'624);
  const Count dense = attention(h, 16, 16, 128) + 3 * h + 2 * h;
  const Count experts = 60 * gated(h, 1408) + 60 * h + gated(h, 5632) + h;
  INFO("Qwen1.5-MoE-A2.7B is what the defaults of its class describe");
  CHECK(parameters_of(built(R"({"model_type": "qwen2_moe"})")) ==
        2 * 151936 * h + 24 * (dense + experts) + h);
  CHECK(2 * 151936 * h + 24 * (dense + experts) + h == 14'315'784'192);
}

TEST_CASE("what a configuration leaves out is the default of its class") {
  CHECK(parameters_of(built(R"({"model_type": "gpt2"})")) == 124'439'808);
  CHECK(parameters_of(built(R"({"model_type": "gpt2", "n_embd": 1600, "n_layer": 48,
      "n_head": 25, "n_inner": null})")) == 1'557'611'200);
  CHECK(parameters_of(built(R"({"model_type": "gpt_neox"})")) == 20'554'567'680);
  CHECK(parameters_of(built(R"({"model_type": "bert", "hidden_size": null})")) == 109'514'298);
  CHECK(parameters_of(built(R"({"model_type": "mixtral", "max_position_embeddings": 32768})")) ==
        46'702'792'704);
  CHECK(parameters_of(built(R"({"base": {"model_type": "llama", "vocab_size": 128256,
      "intermediate_size": 14336, "num_key_value_heads": 8, "max_position_embeddings": 131072},
      "sequence_length": 8192})")) == 8'030'261'248);
  for (const ConfigType& type : config_types()) {
    const std::string plain = R"({"base": {"model_type": ")" + std::string(type.name) + "\"}";
    const bool images = type.name == "vit";
    CAPTURE(type.name);
    CHECK(parameters_of(built(plain + (images ? "}" : R"(, "sequence_length": 128})"))) > 0);
  }
}

TEST_CASE("a configuration is read from a file, under its folder's name, and keys go over it") {
  const auto folder = std::filesystem::temp_directory_path() / "interlock-config-test";
  std::filesystem::create_directories(folder / "tiny");
  const std::string path = (folder / "tiny/config.json").string();
  write_file(path, R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
      "bos_token_id": 1, "hidden_size": 8, "intermediate_size": 12, "num_attention_heads": 2,
      "num_hidden_layers": 3, "vocab_size": 10, "torch_dtype": "bfloat16"})");
  const ModelGraph graph = built('"' + path + '"');
  CHECK(graph.name == "tiny");
  CHECK(graph.modules.size() == 5);
  CHECK(graph.tokens_per_sample == 2048);
  const ModelGraph over = built(R"({"base": ")" + path + R"(", "layers": 4, "name": "four",
      "sequence_length": 6, "tied_embeddings": true})");
  CHECK(over.name == "four");
  CHECK(over.modules.size() == 6);
  CHECK(over.tokens_per_sample == 6);
  CHECK(parameters_of(over) == 10 * 8 + 4 * (4 * 8 * 8 + 3 * 8 * 12 + 2 * 8) + 8);
  std::filesystem::remove_all(folder);
}

TEST_CASE("a base may be any model, a text part is found inside, and null takes a key away") {
  const ModelGraph shorter = built(R"({"base": "gpt2", "sequence_length": 64})");
  CHECK(shorter.name == "gpt2");
  CHECK(shorter.tokens_per_sample == 64);
  CHECK(parameters_of(shorter) == 124'439'808);
  const ModelGraph seen = built(R"({"model_type": "seeing", "vision_config": {},
      "text_config": {"model_type": "llama", "num_hidden_layers": 2}})");
  CHECK(seen.modules.size() == 4);
  const ModelGraph windowed = zoo("mistral-7b");
  const ModelGraph whole = built(R"({"base": "mistral-7b", "sliding_window": null})");
  CHECK(model_flops(whole) > model_flops(windowed));
}

std::vector<std::string> mistakes(const std::string& text) {
  const JsonValue value = parse_json(text, "s.json");
  Diagnostics diagnostics;
  CHECK(build_model({&value, "/model"}, {}, diagnostics).modules.empty());
  return diagnostics.messages();
}

TEST_CASE("lists give each layer its own key heads and width") {
  const ModelGraph graph = built(R"({"model_type": "llama", "hidden_size": 64, "vocab_size": 10,
      "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": [1, 2, 4],
      "intermediate_size": [32, 32, 96]})");
  const auto layer = [](Count keys, Count width) {
    return attention(64, 4, keys, 16) + gated(64, width) + 2 * 64;
  };
  CHECK(graph.modules[1].parameters == layer(1, 32));
  CHECK(graph.modules[2].parameters == layer(2, 32));
  CHECK(graph.modules[3].parameters == layer(4, 96));
  CHECK(mistakes(R"({"model_type": "llama", "num_hidden_layers": 3,
      "intermediate_size": [32, 32]})")
            .front()
            .find("/model/intermediate_size: 2 entries for 3 layers; expected as many") !=
        std::string::npos);
}

TEST_CASE("blocks that a search has chosen miss a half, or have heads and widths of their own") {
  const std::string start = R"({"model_type": "nemotron-nas", "hidden_size": 768, "vocab_size": 10,
      "num_hidden_layers": 2, "num_attention_heads": 4, "block_configs": [
      {"attention": {"n_heads_in_group": 2, "no_op": false}, "ffn": {"ffn_mult": 1.25}},
      {"attention": {"no_op": true)";
  const ModelGraph graph = built(start + R"(}, "ffn": {"ffn_mult": 0.5}}]})");
  // 2 x 1.25 x 768 / 3 is 640, and 256 is.
  CHECK(graph.modules[1].parameters == attention(768, 4, 2, 192) + gated(768, 768) + 2 * 768);
  CHECK(graph.modules[2].parameters == gated(768, 256) + 768);
  CHECK(mistakes(start + R"(, "replace_with_linear": true}, "ffn": {"ffn_mult": 0.5}}]})")
            .front()
            .find("/model/block_configs: a block with \"replace_with_linear\" is not known") !=
        std::string::npos);
}

TEST_CASE("what reads images becomes an encoder, with an assumption that says what to type") {
  const std::string text = R"("text_config": {"model_type": "llama", "num_hidden_layers": 2,
      "max_position_embeddings": 2048})";
  const std::string tower = R"("vision_config": {"model_type": "clip_vision_model",
      "num_hidden_layers": 3, "image_size": 64, "patch_size": 8}, )";
  const ModelGraph seen = built(R"({"model_type": "llava", )" + tower + text + "}");
  CHECK(seen.modules.size() == 1 + 3 + 1 + 1 + 2 + 1);
  REQUIRE(seen.notes.size() == 2);
  CHECK(seen.notes[1] ==
        "one image of 64 x 64 pixels in each sample, 64 of its tokens, is assumed; for others "
        "--set model.encoder.images=N (0: text alone) and --set "
        "model.encoder.patches.image_size=N");
  const ModelGraph alone = built(R"({"base": {"model_type": "llava", )" + tower + text +
                                 R"(}, "encoder": {"images": 0}})");
  CHECK(alone.modules.size() == 4);
  const ModelGraph unknown = built(R"({"model_type": "seeing", )" + tower + text + "}");
  CHECK(unknown.modules.size() == 4);
  CHECK(unknown.notes.back() == "the part that reads images (vision_config) is left out");
}

TEST_CASE("windows of Qwen2.5-VL's patches are parts of a layer pattern") {
  const ModelGraph graph = built(R"({"model_type": "qwen2_5_vl", "hidden_size": 64,
      "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 1,
      "vision_config": {"depth": 4, "hidden_size": 32, "num_heads": 2, "intermediate_size": 48,
                        "window_size": 112, "patch_size": 14, "fullatt_block_indexes": [3]}})");
  const auto scores = [&](std::size_t module) {
    double flops = 0;
    for (const Work& work : graph.modules[module].forward) {
      if (work.op_class == OpClass::Attention) flops += work.flops.value();
    }
    return flops;
  };
  // 32 x 32 patches of 448 pixels, 8 x 8 of them in a window.
  CHECK(scores(1) == 2 * 2.0 * 1024 * 64 * 32);
  CHECK(scores(4) == 2 * 2.0 * 1024 * 1024 * 32);
}

TEST_CASE("fields without time or memory are dropped silently, unknown ones are named in a note") {
  const ModelGraph graph = built(R"({"model_type": "llama", "bos_token_id": 1, "rope_theta": 5e5,
      "initializer_range": 0.02, "quantization_config": {"bits": 4}, "summary_type": "cls",
      "use_cache": true, "hidden_act": "silu", "sparkle": 3, "glitter": "much"})");
  REQUIRE(graph.notes.size() == 3);
  CHECK(graph.notes[0] == "not used, as nothing is known of them here: sparkle, glitter");
}

TEST_CASE("an unknown model_type is read by its fields, and a note says so") {
  const std::string sizes = R"("vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
      "max_position_embeddings": 4096)";
  const ModelGraph graph = built(R"({"model_type": "new", "rms_norm_eps": 1e-5, "rope_theta": 1e4,
      "hidden_act": "silu", "tie_word_embeddings": false, )" +
                                 sizes + "}");
  CHECK(parameters_of(graph) == 7'241'732'096);  // Mistral's
  REQUIRE(graph.notes.size() == 1);
  CHECK(graph.notes[0] ==
        "model_type \"new\" is unknown and was read by its fields: RMS norms before attention and "
        "MLP, gated MLPs, rotary positions, no biases but those that a field says");
  const ModelGraph other = built(R"({"model_type": "new", "layer_norm_eps": 1e-5,
      "hidden_act": "gelu", "mlp_bias": true, )" +
                                 sizes + "}");
  const Count mlp = 14336 + 4096;
  const Count layer = attention(4096, 32, 8, 128) + 2 * 4096 * 14336 + mlp + 4 * 4096;
  CHECK(parameters_of(other) == (32000 + 4096) * 4096 + 32 * layer + 2 * 4096);
  const ModelGraph shorter = built(R"({"model_type": "llama", "sequence_length": 64})");
  CHECK(shorter.tokens_per_sample == 64);
}

}  // namespace
}  // namespace interlock::config_file_test
