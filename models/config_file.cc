// Config file: puts the fields of a configuration into the keys of a transformer.
// SPDX-License-Identifier: Apache-2.0
#include "models/config_file.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/text.h"
#include "models/config_types.h"

namespace interlock {
namespace {

using Kind = JsonValue::Kind;

/// Other names of a field, of older classes and of GPT-2's.
struct Alias {
  std::string_view name, field;
};
constexpr Alias kAliases[] = {{"n_embd", "hidden_size"},
                              {"n_layer", "num_hidden_layers"},
                              {"n_head", "num_attention_heads"},
                              {"n_positions", "max_position_embeddings"},
                              {"n_inner", "intermediate_size"},
                              {"num_experts", "n_routed_experts"},
                              {"num_local_experts", "n_routed_experts"}};

/// Fields that stand as they are under a name of ours; null leaves the key out.
struct Copy {
  std::string_view field, key;
};
constexpr Copy kCopies[] = {{"num_hidden_layers", "layers"},
                            {"hidden_size", "hidden_size"},
                            {"num_attention_heads", "attention_heads"},
                            {"num_key_value_heads", "kv_heads"},
                            {"head_dim", "head_size"},
                            {"intermediate_size", "ffn_hidden_size"},
                            {"vocab_size", "vocab_size"},
                            {"tie_word_embeddings", "tied_embeddings"},
                            {"attention_bias", "qkv_bias"},
                            {"attention_bias", "projection_bias"},
                            {"qkv_bias", "qkv_bias"},
                            {"mlp_bias", "mlp_bias"},
                            {"type_vocab_size", "token_types"},
                            {"use_parallel_residual", "parallel_residual"},
                            {"rotary_pct", "rotary_share"}};
constexpr Copy kExpertCopies[] = {
    {"n_routed_experts", "experts"},           {"num_experts_per_tok", "experts_per_token"},
    {"n_shared_experts", "shared_experts"},    {"moe_intermediate_size", "expert_ffn_hidden_size"},
    {"first_k_dense_replace", "dense_layers"}, {"moe_layer_freq", "expert_interval"}};
constexpr Copy kLatentCopies[] = {{"q_lora_rank", "query_rank"},
                                  {"kv_lora_rank", "kv_rank"},
                                  {"qk_nope_head_dim", "head_size"},
                                  {"qk_rope_head_dim", "rotary_head_size"},
                                  {"v_head_dim", "value_head_size"}};
constexpr Copy kPatchCopies[] = {
    {"image_size", "image_size"}, {"patch_size", "patch_size"}, {"num_channels", "channels"}};
/// Fields in which null says something; elsewhere it stands for the default.
constexpr std::string_view kNullable[] = {
    "num_key_value_heads", "head_dim",         "intermediate_size", "sliding_window",
    "q_lora_rank",         "n_routed_experts", "n_shared_experts",  "num_experts_per_tok"};

/// A configuration with the defaults of its type, and the transformer that is made of it.
class Translation {
 public:
  Translation(const JsonNode& config, const ConfigType& type, Diagnostics& diagnostics)
      : config_(config), diagnostics_(diagnostics), model_(parse_json(type.traits, "")) {
    const JsonValue defaults = parse_json(type.fields, "");
    for (const auto& [field, value] : defaults.members) fields_.push_back({field, value});
    for (JsonMember& field : fields_) place_at(*config.value, field.second);
    place_at(*config.value, model_);
    put("kind", text("transformer"));
    put("attention", text("fused"));
    for (const auto& [name, value] : config.value->members) {
      JsonValue* field = find(name);
      if (field != nullptr && (value.kind != Kind::Null || nullable(name))) *field = value;
    }
  }

  JsonValue model() {
    copy(kCopies, model_);
    copy_object(kPatchCopies, "patches");
    copy_object(kLatentCopies, "latent_attention");
    add_experts();
    add_dropout();
    add_window();
    add_readout();
    add_positions();
    return std::move(model_);
  }

 private:
  static std::string_view field_name(std::string_view name) {
    for (const Alias& alias : kAliases) {
      if (alias.name == name) return alias.field;
    }
    return name;
  }
  static bool nullable(std::string_view name) {
    return std::ranges::find(kNullable, field_name(name)) != std::end(kNullable);
  }

  JsonValue text(const std::string& words) const {
    JsonValue value = {.kind = Kind::String, .text = words};
    place_at(*config_.value, value);
    return value;
  }
  JsonValue number(double amount) const {
    JsonValue value = {.kind = Kind::Number, .number = amount};
    place_at(*config_.value, value);
    return value;
  }

  JsonValue* find(std::string_view name) {
    for (JsonMember& field : fields_) {
      if (field.first == field_name(name)) return &field.second;
    }
    return nullptr;
  }
  /// The number of a field, or nothing: null, of no such type, or wrong, which is reported.
  std::optional<double> amount(std::string_view name) {
    const JsonValue* field = find(name);
    if (field == nullptr || field->kind == Kind::Null) return std::nullopt;
    return read_number({field, config_.path}, 0, 1e12, diagnostics_);
  }
  bool is_true(std::string_view name) {
    const JsonValue* field = find(name);
    return field != nullptr && field->kind == Kind::Boolean && field->boolean;
  }
  void refuse(std::string_view name, const std::string& message) {
    report(diagnostics_, {find(name), json_pointer(config_.path, name)}, message);
  }

  void put(std::string_view key, const JsonValue& value) { put(key, value, model_); }
  static void put(std::string_view key, const JsonValue& value, JsonValue& object) {
    if (JsonValue* known = object.find(key)) {
      *known = value;
    } else {
      object.members.push_back({std::string(key), value});
    }
  }
  template <std::size_t N>
  void copy(const Copy (&copies)[N], JsonValue& object) {
    for (const auto& [field, key] : copies) {
      const JsonValue* value = find(field);
      if (value != nullptr && value->kind != Kind::Null) put(key, *value, object);
    }
  }
  template <std::size_t N>
  void copy_object(const Copy (&copies)[N], std::string_view key) {
    JsonValue object = {.kind = Kind::Object};
    place_at(*config_.value, object);
    copy(copies, object);
    if (!object.members.empty()) put(key, object);
  }

  void add_experts() {
    const JsonValue* experts = find("n_routed_experts");
    if (experts == nullptr || experts->kind == Kind::Null) return;
    copy(kExpertCopies, model_);
    if (amount("decoder_sparse_step").value_or(1) != 1) {
      refuse("decoder_sparse_step", "layers of several forms; expected 1: experts in every layer");
    }
    if (const JsonValue* dense = find("mlp_only_layers"); dense && !dense->items.empty()) {
      refuse("mlp_only_layers", "layers of several forms; expected an empty list");
    }
    const auto shared = amount("shared_expert_intermediate_size");
    const auto size = amount("moe_intermediate_size");
    if (!shared || !size) return;
    if (*size == 0 || std::fmod(*shared, *size) != 0) {
      refuse("shared_expert_intermediate_size", "expected a multiple of moe_intermediate_size");
      return;
    }
    put("shared_experts", number(*shared / *size));
    put("shared_expert_gate", {.kind = Kind::Boolean, .boolean = true});
  }

  void add_dropout() {
    double most = 0;
    for (const char* name :
         {"resid_pdrop", "embd_pdrop", "attn_pdrop", "hidden_dropout", "hidden_dropout_prob",
          "attention_dropout", "attention_probs_dropout_prob"}) {
      most = std::max(most, amount(name).value_or(0));
    }
    put("dropout", number(most));
  }

  void add_window() {
    const JsonValue* window = find("sliding_window");
    if (window == nullptr || window->kind == Kind::Null) return;
    if (find("use_sliding_window") != nullptr) {
      if (!is_true("use_sliding_window")) return;
      const double first = amount("max_window_layers").value_or(0);
      if (first >= amount("num_hidden_layers").value_or(1)) return;
      if (first > 0) {
        refuse("max_window_layers",
               "layers of several forms; expected 0, or no \"use_sliding_window\"");
      }
    }
    put("sliding_window", *window);
  }

  /// The class that is meant to be trained, and how many classes it tells apart.
  void add_readout() {
    const bool images = find("image_size") != nullptr;
    if (!images && find("type_vocab_size") == nullptr) return;
    const JsonValue* list = config_.value->find("architectures");
    const bool named = list != nullptr && !list->items.empty();
    const std::string name = named ? list->items.front().text : "";
    if (!images && !name.ends_with("ForSequenceClassification")) {
      put("readout", text("masked-lm"));
      return;
    }
    put("readout", text("classes"));
    if (!images) put("pooler", {.kind = Kind::Boolean, .boolean = true});
    const JsonValue* labels = config_.value->find("id2label");
    const JsonValue* count = config_.value->find("num_labels");
    const double known = labels != nullptr ? static_cast<double>(labels->members.size()) : 2;
    put("classes", count != nullptr ? *count : number(known));
  }

  /// How many positions there are, and the length of samples if that can be meant.
  void add_positions() {
    const JsonValue* rope = config_.value->find("rope_parameters");
    const JsonValue* share = rope ? rope->find("partial_rotary_factor") : nullptr;
    if (share != nullptr && find("rotary_pct") != nullptr) put("rotary_share", *share);
    const JsonValue* positions = find("max_position_embeddings");
    if (positions == nullptr) return;
    const JsonValue* kind = model_.find("positions");
    if (kind == nullptr || kind->text == "learned") put("max_positions", *positions);
    const bool meant = amount("max_position_embeddings").value_or(0) <= kLongestAssumed;
    JsonValue length = meant ? *positions : JsonValue();
    if (!meant) place_at(*positions, length);
    put("sequence_length", length);
  }

  JsonNode config_;
  Diagnostics& diagnostics_;
  JsonValue model_;
  std::vector<JsonMember> fields_;
};

}  // namespace

bool is_config(const JsonValue& object) {
  return object.kind == Kind::Object && object.find("kind") == nullptr &&
         (object.find("model_type") != nullptr || object.find("text_config") != nullptr);
}

std::optional<JsonValue> model_of_config(const JsonNode& config, Diagnostics& diagnostics) {
  std::vector<std::string> names;
  for (const ConfigType& type : config_types()) names.emplace_back(type.name);
  const JsonValue* type = config.value->find("model_type");
  const auto known = type ? std::ranges::find(names, type->text) : names.end();
  const JsonValue* inner = config.value->find("text_config");
  if (known == names.end() && inner != nullptr && is_config(*inner)) {
    return model_of_config(config.child("text_config"), diagnostics);
  }
  if (known == names.end()) {
    report(diagnostics, type ? config.child("model_type") : config,
           "unknown model_type " + (type ? described(*type) : "of \"text_config\"") +
               "; expected " + join_choices(names));
    return std::nullopt;
  }
  const std::size_t before = diagnostics.messages().size();
  const auto place = static_cast<std::size_t>(known - names.begin());
  Translation translation(config, config_types()[place], diagnostics);
  JsonValue model = translation.model();
  if (diagnostics.messages().size() > before) return std::nullopt;
  return model;
}

}  // namespace interlock
