// Config images: the table of towers, and their projectors.
// SPDX-License-Identifier: Apache-2.0
//
// Source: recalled, of the configuration and modelling sources of transformers (github.com/
// huggingface/transformers, src/transformers/models); the published counts of tests/models/configs
// hold all of them to the weight but paligemma.
#include "models/config_images.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/text.h"

namespace interlock {
namespace {

constexpr double kAssumedPixels = 448;  // on a side, where a tower takes images of any size

constexpr std::string_view kQwen3TowerFields =
    R"({"num_hidden_layers": 27, "hidden_size": 1152, "intermediate_size": 4304,
        "num_attention_heads": 16, "num_channels": 3, "patch_size": 16, "image_size": null,
        "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 3584,
        "num_position_embeddings": 2304, "deepstack_visual_indexes": [8, 16, 24]})";
constexpr std::string_view kQwen3TowerTraits =
    R"({"bias": true, "positions": "both", "patches": {"class_token": false}})";

constexpr ConfigType kTowers[] = {
    {"clip_vision_model", R"({"bias": true, "embedding_norm": true, "patches": {"bias": false}})",
     R"({"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
         "num_attention_heads": 12, "num_channels": 3, "image_size": 224, "patch_size": 32,
         "attention_dropout": 0, "vocab_size": null})"},
    {"internvl_vision", R"({"bias": true, "projection_bias": true, "final_norm": false})",
     R"({"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
         "num_attention_heads": 16, "num_channels": 3, "image_size": 448, "patch_size": 14,
         "attention_bias": false, "use_qk_norm": false, "attention_dropout": 0,
         "hidden_dropout_prob": 0})"},
    {"llama4_vision_model",
     R"({"bias": true, "positions": "both", "embedding_norm": true, "patches": {"bias": false}})",
     R"({"hidden_size": 768, "intermediate_size": 5632, "num_hidden_layers": 34,
         "num_attention_heads": 16, "num_channels": 3, "image_size": 448, "patch_size": 14,
         "pixel_shuffle_ratio": 0.5, "projector_input_dim": 4096, "projector_output_dim": 4096,
         "vision_output_dim": 7680, "attention_dropout": 0})"},
    {"pixtral",
     R"({"norm": "rmsnorm", "gated_mlp": true, "bias": false, "positions": "rotary",
         "embedding_norm": true, "patches": {"class_token": false, "bias": false}, "final_norm":
         false})",
     R"({"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
         "num_attention_heads": 16, "head_dim": null, "num_channels": 3, "image_size": 1024,
         "patch_size": 16, "attention_dropout": 0})"},
    {"qwen2_5_vl",
     R"({"norm": "rmsnorm", "gated_mlp": true, "bias": true, "positions": "rotary", "patches":
         {"class_token": false, "bias": false}})",
     R"({"num_hidden_layers": 32, "hidden_size": 3584, "intermediate_size": 3420,
         "num_attention_heads": 16, "num_channels": 3, "patch_size": 14, "image_size": null,
         "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 3584,
         "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31]})"},
    {"qwen2_vl",
     R"({"bias": true, "positions": "rotary", "patches": {"class_token": false, "bias": false}})",
     R"({"num_hidden_layers": 32, "embed_dim": 1280, "hidden_size": 3584, "mlp_ratio": 4,
         "num_attention_heads": 16, "num_channels": 3, "patch_size": 14, "image_size": null,
         "spatial_merge_size": 2, "temporal_patch_size": 2})"},
    {"qwen3_5", kQwen3TowerTraits, kQwen3TowerFields},
    {"qwen3_5_moe", kQwen3TowerTraits, kQwen3TowerFields},
    {"qwen3_vl", kQwen3TowerTraits, kQwen3TowerFields},
    {"qwen3_vl_moe", kQwen3TowerTraits, kQwen3TowerFields},
    {"siglip_vision_model", R"({"bias": true, "patches": {"class_token": false}})",
     R"({"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
         "num_attention_heads": 12, "num_channels": 3, "image_size": 224, "patch_size": 16,
         "attention_dropout": 0})"},
};

/// Classes whose projectors are known.
constexpr std::string_view kProjectors[] = {
    "gemma3",     "internvl", "llama4",  "llava",       "mistral3", "paligemma",
    "qwen2_5_vl", "qwen2_vl", "qwen3_5", "qwen3_5_moe", "qwen3_vl", "qwen3_vl_moe"};

std::string type_in(const JsonValue& config) {
  const JsonValue* type = config.find("model_type");
  return type != nullptr ? type->text : "";
}

/// Returns a number, or the first of a list.
double number_of(const JsonValue* value, double otherwise) {
  if (value != nullptr && value->kind == JsonValue::Kind::Array && !value->items.empty()) {
    value = &value->items.front();
  }
  return value != nullptr && value->kind == JsonValue::Kind::Number ? value->number : otherwise;
}

/// One tower and its projector.
class Tower {
 public:
  Tower(const JsonValue& config, const ConfigFields& tower, const JsonValue& width,
        JsonValue& encoder)
      : config_(config), tower_(tower), type_(type_in(config)), width_(width), encoder_(encoder) {}

  void put() {
    if (tower_.find("embed_dim")) {  // there, hidden_size is the decoder's
      put("hidden_size", number("embed_dim"));
      put("ffn_hidden_size", number("embed_dim") * number("mlp_ratio"));
    }
    put_patches();
    if (tower_.find("num_position_embeddings")) {
      put("max_positions", number("num_position_embeddings"));
    }
    put_windows();
    put_projector();
  }

 private:
  double number(std::string_view field) const { return number_of(tower_.find(field), 1); }
  /// Returns a number beside the tower.
  double beside(std::string_view field, double otherwise) const {
    return number_of(config_.find(field), otherwise);
  }
  void put(std::string_view key, JsonValue value, JsonValue& object) const {
    place_at(*tower_.config().value, value);
    std::erase_if(object.members, [&](const JsonMember& one) { return one.first == key; });
    object.members.push_back({std::string(key), std::move(value)});
  }
  void put(std::string_view key, double value) { put(key, json_number(value), encoder_); }

  void put_patches() {
    JsonValue* patches = encoder_.find("patches");
    if (patches == nullptr) {
      put("patches", json_object({}), encoder_);
      patches = encoder_.find("patches");
    }
    const bool any_size =
        tower_.find("image_size") == nullptr || tower_type(config_)->name == "pixtral";
    const double side = any_size ? kAssumedPixels : number("image_size");
    const double frames = tower_.find("temporal_patch_size") ? number("temporal_patch_size") : 1;
    put("image_size", json_number(side), *patches);
    put("patch_size", json_number(number("patch_size")), *patches);
    put("channels", json_number(number("num_channels") * frames), *patches);
  }

  /// Squares of patches see themselves alone, but for some layers.
  void put_windows() {
    const JsonValue* whole = tower_.find("fullatt_block_indexes");
    if (whole == nullptr) return;
    const double side = std::floor(number("window_size") / number("patch_size"));
    std::vector<JsonValue> items;
    const int layers = static_cast<int>(number("num_hidden_layers"));
    for (int i = 0; i < layers && i < 100'000; ++i) {
      const bool sees_all =
          std::ranges::any_of(whole->items, [&](const JsonValue& one) { return one.number == i; });
      JsonValue item = json_object({});
      if (!sees_all) item.members.push_back({"attention_chunk", json_number(side * side)});
      items.push_back(std::move(item));
    }
    put("layer_pattern", json_list(items), encoder_);
  }

  void put_projector() {
    const double hidden = number_of(encoder_.find("hidden_size"), 1), width = width_.number;
    const JsonValue& patches = *encoder_.find("patches");
    const double side = patches.find("image_size")->number / patches.find("patch_size")->number;
    double merge = 1;
    std::vector<double> widths;
    JsonValue connector = json_object({});
    if (type_ == "gemma3") {
      merge = std::floor(side / std::sqrt(beside("mm_tokens_per_image", 256)));
      connector = parse_json(R"({"merge_by": "mean", "norm": "rmsnorm", "bias": false})", "");
    } else if (type_ == "llama4") {
      merge = std::round(1 / number("pixel_shuffle_ratio"));
      widths = {number("projector_input_dim"), number("projector_output_dim")};
      connector = parse_json(R"({"bias": false})", "");
    } else if (type_ == "mistral3") {
      merge = beside("spatial_merge_size", 2);
      widths = {width};
      put("final_norm", json_boolean(true), encoder_);
      connector = parse_json(R"({"merge_by": "product", "bias": false})", "");
    } else if (type_ == "internvl") {
      merge = std::round(1 / beside("downsample_ratio", 0.5));
      widths = {width};
      connector = parse_json(R"({"norm": "layernorm", "norm_of": "square"})", "");
    } else if (type_ == "llava") {
      widths = {width};
    } else if (type_ != "paligemma") {  // Qwen's
      merge = number("spatial_merge_size");
      widths = {hidden * merge * merge};
      if (tower_.is_true("deepstack_visual_indexes")) {
        put("deepstack", *tower_.find("deepstack_visual_indexes"), connector);
      }
    }
    put("merge", json_number(merge), connector);
    std::vector<JsonValue> list;
    list.reserve(widths.size());
    for (const double one : widths) list.push_back(json_number(one));
    if (!list.empty()) put("hidden_size", json_list(list), connector);
    put("connector", connector, encoder_);
  }

  const JsonValue& config_;
  const ConfigFields& tower_;
  std::string type_;
  const JsonValue& width_;
  JsonValue& encoder_;
};

}  // namespace

const ConfigType* tower_type(const JsonValue& config) {
  const JsonValue* tower = config.find("vision_config");
  const std::string whole = type_in(config);
  if (tower == nullptr || std::ranges::find(kProjectors, whole) == std::end(kProjectors)) {
    return nullptr;
  }
  const std::string own = type_in(*tower);
  const auto found =
      std::ranges::find(kTowers, std::string_view(own.empty() ? whole : own), &ConfigType::name);
  return found != std::end(kTowers) ? found : nullptr;
}

void put_images(const JsonValue& config, const ConfigFields& tower, const JsonValue& width,
                JsonValue& encoder) {
  Tower(config, tower, width, encoder).put();
}

std::string note_on_images(const JsonValue& encoder) {
  const auto number = [&](const char* object, const char* key) {
    const JsonValue* found = encoder.find(object);
    return number_of(found != nullptr ? found->find(key) : nullptr, 1);
  };
  const double pixels = number("patches", "image_size"), merge = number("connector", "merge");
  const double side = std::floor(pixels / number("patches", "patch_size") / merge);
  return "one image of " + format_number(pixels) + " x " + format_number(pixels) +
         " pixels in each sample, " + format_number(side * side) +
         " of its tokens, is assumed; for others --set model.encoder.images=N (0: text alone) and "
         "--set model.encoder.patches.image_size=N";
}

void renew_note_on_images(const JsonValue& base, JsonValue& model) {
  const JsonValue* before = base.find("encoder");
  JsonValue* notes = model.find("notes");
  if (before == nullptr || notes == nullptr) return;
  const auto told = std::ranges::find(notes->items, note_on_images(*before), &JsonValue::text);
  if (told == notes->items.end()) return;
  const JsonValue* encoder = model.find("encoder");
  if (encoder == nullptr || encoder->find("images") != nullptr) {
    notes->items.erase(told);
  } else {
    told->text = note_on_images(*encoder);
  }
}

}  // namespace interlock
