// Configurations of Hugging Face with lists: one entry a layer, or a sentence that asks for it.
// SPDX-License-Identifier: Apache-2.0
#include "models/build_model.h"
#include "tests/models/built.h"

namespace interlock::config_lists_test {
namespace {

/// Returns what a model of `text` is refused with; "" if it is right.
std::string told(const std::string& text) {
  const JsonValue value = parse_json(text, "config.json");
  Diagnostics diagnostics;
  build_model({&value, "/model"}, {}, diagnostics);
  std::string all;
  for (const std::string& message : diagnostics.messages()) all += message + "\n";
  return all;
}

/// A configuration of two layers with `more` fields.
std::string config(const std::string& type, const std::string& more) {
  return R"({"model_type": ")" + type + R"(", "hidden_size": 768, "vocab_size": 10,
      "num_hidden_layers": 2, "num_attention_heads": 4)" +
         (more.empty() ? "" : ", " + more) + "}";
}

void check_told(const std::string& text, const std::string& words) {
  const std::string all = told(text);
  INFO(text);
  CHECK_MESSAGE(all.find(words) != std::string::npos, all);
}

TEST_CASE("blocks are a list of objects, or nothing that says there are none") {
  const auto blocks = [](const std::string& value) {
    return config("nemotron-nas", R"("block_configs": )" + value);
  };
  for (const char* none : {"[]", "{}", "null", "false", "\"\""}) {
    INFO(none);
    CHECK(parameters_of(built(blocks(none))) == parameters_of(built(config("nemotron-nas", ""))));
  }
  const std::string expected = "; expected a list of objects, one for each layer";
  check_told(blocks("\"x\""), "/model/block_configs: \"x\"" + expected);
  check_told(blocks("true"), "/model/block_configs: true" + expected);
  check_told(blocks("[1, 1]"), "/model/block_configs: 1 in the list" + expected);
  check_told(blocks(R"({"attention": {}})"), expected);
}

TEST_CASE("lists that say what layers are hold names, or numbers") {
  check_told(config("gpt_oss", R"("layer_types": "full_attention")"),
             "/model/layer_types: \"full_attention\"; expected a list of names, one for each");
  check_told(config("qwen3_moe", R"("mlp_only_layers": 1)"),
             "/model/mlp_only_layers: 1; expected a list of numbers of layers");
}

TEST_CASE("a list for a size that is one for all layers is refused where the size is read") {
  CHECK(told(config("qwen3_moe", R"("moe_intermediate_size": 768)")).empty());
  check_told(config("qwen3_moe", R"("moe_intermediate_size": [768, 512])"), "number");
  INFO("Hunyuan has lists whose entries are all alike");
  const std::string alike = R"("moe_topk": [8, 8], "num_experts": 64)";
  CHECK(parameters_of(built(config("hunyuan_v1_moe", alike))) ==
        parameters_of(built(config("hunyuan_v1_moe", R"("moe_topk": 8, "num_experts": 64)"))));
  check_told(config("llama", R"("head_dim": [192, 192])"), "number");
  INFO("towers have no sizes by layer");
  check_told(R"({"model_type": "llava", "text_config": )" + config("llama", "") +
                 R"(, "vision_config": {"model_type": "clip_vision_model", "num_hidden_layers": 2,
                 "image_size": 64, "patch_size": 8, "intermediate_size": [32, 32]}})",
             "number");
}

const std::string kTower = R"("vision_config": {"model_type": "clip_vision_model",
    "num_hidden_layers": 3, "image_size": 64, "patch_size": 8}, )";

TEST_CASE("features of several layers are refused, of one they are known") {
  const auto seeing = [](const std::string& layers) {
    return R"({"model_type": "llava", "vision_feature_layer": )" + layers + ", " + kTower +
           R"("text_config": )" + config("llama", "") + "}";
  };
  CHECK(told(seeing("-2")).empty());
  CHECK(told(seeing("[-2]")).empty());
  check_told(seeing("[-2, -1]"),
             "/model/vision_feature_layer: features of 2 layers side by side are not known here; "
             "expected one layer, e.g. -2");
}

TEST_CASE("a note on images says what is still assumed of them") {
  const auto notes = [](const std::string& encoder) {
    return built(R"({"base": {"model_type": "llava", )" + kTower + R"("text_config": )" +
                 config("llama", R"("intermediate_size": 3072, "max_position_embeddings": 512)") +
                 R"(}, "encoder": )" + encoder + "}")
        .notes;
  };
  CHECK(notes(R"({"images": 2})").empty());
  CHECK(notes("null").empty());
  REQUIRE(notes(R"({"patches": {"image_size": 32}})").size() == 1);
  const std::string sized = notes(R"({"patches": {"image_size": 32}})").front();
  CHECK_MESSAGE(sized.starts_with("one image of 32 x 32 pixels in each sample, 16 of its"), sized);
}

TEST_CASE("sizes that a configuration leaves to its class are noted with what they are") {
  const auto notes = [](const std::string& text) { return built(text).notes; };
  const std::string sizes = R"("hidden_size": 64, "num_attention_heads": 4, "vocab_size": 10,
      "max_position_embeddings": 8, )";
  CHECK(notes(R"({"model_type": "llama", )" + sizes +
              R"("num_hidden_layer": 2, "intermediate_sise": 256})") ==
        std::vector<std::string>{
            "not used, as nothing is known of them here: num_hidden_layer, intermediate_sise",
            "not in the configuration; model_type \"llama\" has num_hidden_layers 32, "
            "intermediate_size 11008"});
  CHECK(notes(R"({"model_type": "llama", )" + sizes +
              R"("num_hidden_layers": 2, "intermediate_size": 256})")
            .empty());
  // Other names of the same sizes say them as well.
  CHECK(notes(R"({"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "n_inner": 256,
      "vocab_size": 10, "n_positions": 8})")
            .empty());
  // Without experts nothing is said of their sizes.
  const std::string dense = R"("num_hidden_layers": 2, "intermediate_size": 256, "head_dim": 16,
      "num_key_value_heads": 4, "num_experts": )";
  CHECK(notes(R"({"model_type": "qwen3_moe", )" + sizes + dense + "0}").empty());
  CHECK(notes(R"({"model_type": "qwen3_moe", )" + sizes + dense + "16}") ==
        std::vector<std::string>{
            "not in the configuration; model_type \"qwen3_moe\" has moe_intermediate_size 768"});
}

}  // namespace
}  // namespace interlock::config_lists_test
