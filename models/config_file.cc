// Config file: puts the fields of a configuration into the keys of a transformer.
// SPDX-License-Identifier: Apache-2.0
#include "models/config_file.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/text.h"
#include "models/config_images.h"
#include "models/config_layers.h"
#include "models/unmodelled_types.h"

namespace interlock {
namespace {

using Kind = JsonValue::Kind;

constexpr const char* kNoImages = "the part that reads images (vision_config) is left out";

/// Fields that stand as they are under a name of ours.
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
                            {"bias", "bias"},
                            {"attention_bias", "qkv_bias"},
                            {"attention_bias", "projection_bias"},
                            {"attention_out_bias", "projection_bias"},
                            {"qkv_bias", "qkv_bias"},
                            {"mlp_bias", "mlp_bias"},
                            {"lm_head_bias", "readout_bias"},
                            {"use_routing_bias", "router_bias"},
                            {"use_qk_norm", "qk_norm"},
                            {"attention_gate", "attention_gate"},
                            {"type_vocab_size", "token_types"},
                            {"use_parallel_residual", "parallel_residual"},
                            {"rotary_pct", "rotary_share"}};
constexpr Copy kExpertCopies[] = {
    {"n_routed_experts", "experts"},           {"num_experts_per_tok", "experts_per_token"},
    {"n_shared_experts", "shared_experts"},    {"moe_intermediate_size", "expert_ffn_hidden_size"},
    {"first_k_dense_replace", "dense_layers"}, {"moe_layer_freq", "expert_interval"}};
constexpr Copy kGroupCopies[] = {{"n_group", "expert_groups"},
                                 {"topk_group", "expert_groups_per_token"}};
constexpr Copy kLatentCopies[] = {{"q_lora_rank", "query_rank"},
                                  {"kv_lora_rank", "kv_rank"},
                                  {"qk_nope_head_dim", "head_size"},
                                  {"qk_rope_head_dim", "rotary_head_size"},
                                  {"v_head_dim", "value_head_size"}};
constexpr Copy kSelectionCopies[] = {{"index_topk", "tokens"},
                                     {"index_n_heads", "index_heads"},
                                     {"index_head_dim", "index_head_size"}};
/// Sizes by which a model is known, and the keys that tell that it has such a size.
constexpr Copy kClassSizes[] = {{"num_hidden_layers", "layers"},
                                {"hidden_size", "hidden_size"},
                                {"intermediate_size", "ffn_hidden_size"},
                                {"num_attention_heads", "attention_heads"},
                                {"num_key_value_heads", "kv_heads"},
                                {"n_routed_experts", "experts"},
                                {"moe_intermediate_size", "expert_ffn_hidden_size"},
                                {"vocab_size", "vocab_size"}};
constexpr Copy kPatchCopies[] = {
    {"image_size", "image_size"}, {"patch_size", "patch_size"}, {"num_channels", "channels"}};
constexpr Copy kGatedDeltaCopies[] = {{"linear_num_key_heads", "key_heads"},
                                      {"linear_num_value_heads", "value_heads"},
                                      {"linear_key_head_dim", "key_head_size"},
                                      {"linear_value_head_dim", "value_head_size"},
                                      {"linear_conv_kernel_dim", "conv_width"}};
constexpr Copy kMamba2Copies[] = {{"ssm_state_size", "state_size"}, {"mamba_num_heads", "heads"},
                                  {"mamba_head_dim", "head_size"},  {"n_groups", "groups"},
                                  {"conv_kernel", "conv_width"},    {"chunk_size", "chunk_size"},
                                  {"mamba_d_state", "state_size"},  {"mamba_d_conv", "conv_width"}};
constexpr Copy kMambaCopies[] = {
    {"mamba_d_state", "state_size"}, {"mamba_d_conv", "conv_width"}, {"mamba_expand", "expand"}};
/// Keys of a decoder that the encoder of its source has too.
constexpr std::string_view kSourceKeys[] = {
    "layers", "attention_heads", "head_size", "ffn_hidden_size",  "gated_mlp", "norm",
    "bias",   "dropout",         "positions", "position_buckets", "attention"};
constexpr const char* kSourceNote =
    "a source as long as the target is assumed; for another --set "
    "model.encoder.sequence_length=N";
/// Begins the note on a length that no file says.
constexpr std::string_view kNoLength = "no max_position_embeddings in the configuration: ";
constexpr std::string_view kDropouts[] = {"resid_pdrop",         "embd_pdrop",
                                          "attn_pdrop",          "hidden_dropout",
                                          "hidden_dropout_prob", "attention_dropout",
                                          "residual_dropout",    "embedding_dropout",
                                          "output_dropout",      "attention_probs_dropout_prob"};

void add_note(const std::string& note, JsonValue& model) {
  if (model.find("notes") == nullptr) model.members.push_back({"notes", json_list({})});
  model.find("notes")->items.push_back(json_text(note));
  place_at(model, *model.find("notes"));
}

/// Mixers of a form of their own cannot have been meant otherwise than this.
struct Fixed {
  std::string_view field;
  bool value = false;
};
constexpr Fixed kFixed[] = {
    {"use_conv_bias", true}, {"mamba_conv_bias", true}, {"mamba_proj_bias", false}};

/// A configuration, and the transformer that is made of it.
class Translation {
 public:
  Translation(const JsonNode& config, const ConfigType* type, Diagnostics& diagnostics)
      : fields_(config, type, diagnostics), model_(parse_json(type ? type->traits : "{}", "")) {
    place_at(*config.value, model_);
    for (const JsonMember& trait : model_.members) traits_.push_back(trait.first);
    put("kind", json_text("transformer"));
    put("attention", json_text("fused"));
    if (type == nullptr) add_guesses();
    add_notes();
  }

  JsonValue model() {
    add_heads();
    copy(kCopies, model_);
    // In Cohere's norms each head has its own scales.
    const bool own_scales = model_.find("norm_bias") != nullptr && fields_.is_true("use_qk_norm");
    if (own_scales) put("qk_norm", json_text("whole"));
    copy_object(kPatchCopies, "patches");
    add_latents();
    add_streams();
    add_experts();
    add_mixers();
    add_dropout();
    put_layers(fields_, model_);
    drop_unused_sizes();
    add_source();
    add_later_tokens();
    add_readout();
    add_positions();
    note_defaults();
    return std::move(model_);
  }

  /// Returns the encoder of `whole`, whose tower the configuration is, for a decoder of `width`.
  JsonValue encoder(const JsonValue& whole, const JsonValue& width) {
    add_heads();
    copy(kCopies, model_);
    add_dropout();
    std::erase_if(model_.members, [](const JsonMember& member) {
      return member.first == "kind" || member.first == "vocab_size";
    });
    put_images(whole, fields_, width, model_);
    return std::move(model_);
  }

 private:
  JsonValue placed(JsonValue value) const {
    place_at(*fields_.config().value, value);
    return value;
  }

  /// Traits stay: of what the code of a class fixes, no field is asked.
  void put(std::string_view key, JsonValue value) {
    if (value.line == 0) value = placed(std::move(value));
    put(key, value, model_);
  }
  void put(std::string_view key, const JsonValue& value, JsonValue& object) const {
    if (&object == &model_ && std::ranges::find(traits_, key) != traits_.end()) return;
    if (JsonValue* known = object.find(key)) {
      *known = value;
    } else {
      object.members.push_back({std::string(key), value});
    }
  }
  template <std::size_t N>
  void copy(const Copy (&copies)[N], JsonValue& object) const {
    for (const auto& [field, key] : copies) {
      if (const JsonValue* value = fields_.find(field)) put(key, *value, object);
    }
  }
  template <std::size_t N>
  void copy_object(const Copy (&copies)[N], std::string_view key) {
    JsonValue object = placed({.kind = Kind::Object});
    copy(copies, object);
    if (!object.members.empty()) put(key, object);
  }

  /// Takes from which fields there are what the code of an unknown class would say.
  void add_guesses() {
    const bool rms = fields_.find("rms_norm_eps") != nullptr;
    const std::string act = fields_.word("hidden_act");
    const bool gated = act.find("silu") != std::string::npos ||
                       act.find("swi") != std::string::npos || act.find("glu") != std::string::npos;
    std::string missing;
    if (!rms && !fields_.find("layer_norm_epsilon")) {
      missing = "\"rms_norm_eps\" or \"layer_norm_eps\", by which the kind of norm is known";
    }
    if (act.empty()) {
      missing += std::string(missing.empty() ? "" : ", and ") +
                 "\"hidden_act\", by which the kind of MLP is known";
    }
    // Fields that are not understood are refused already.
    if (!missing.empty() && fields_.unknown().empty()) {
      fields_.refuse_type("; expected " + missing);
    }
    bool turns = fields_.find("rotary_dim") != nullptr || fields_.find("rotary_pct") != nullptr;
    for (const char* field : {"rope_theta", "rope_scaling", "rope_parameters"}) {
      turns = turns || fields_.find(field) != nullptr;
    }
    put("norm", json_text(rms ? "rmsnorm" : "layernorm"));
    put("gated_mlp", json_boolean(gated));
    put("bias", json_boolean(false));
    put("positions", json_text(turns ? "rotary" : "learned"));
    const auto near = fields_.nearest_type();
    notes_.push_back("model_type " + described_type() + " is unknown " +
                     (near ? "(did you mean " + in_quotes(*near) + "?) " : "") +
                     "and was read by its fields: " + (rms ? "RMS" : "layer") +
                     " norms before attention and MLP, " + (gated ? "gated" : "plain") + " MLPs, " +
                     (turns ? "rotary" : "learned") +
                     " positions, no biases but those that a field says");
  }
  std::string described_type() const {
    const JsonValue* type = fields_.config().value->find("model_type");
    return type ? described(*type) : "(none)";
  }

  void add_notes() {
    std::string names;
    for (const std::string& name : fields_.unknown()) {
      names += (names.empty() ? "" : ", ") + name;
    }
    if (!names.empty()) notes_.push_back("not used, as nothing is known of them here: " + names);
    for (const std::string& note : notes_) add_note(note, model_);
  }

  /// Notes sizes that the configuration leaves to its class: as often misspelt as meant.
  void note_defaults() {
    std::string names;
    for (const auto& [field, key] : kClassSizes) {
      const JsonValue* value = fields_.find(field);
      if (value == nullptr || value->written || model_.find(key) == nullptr) continue;
      names += (names.empty() ? "" : ", ") + std::string(field) + " " + described(*value);
    }
    if (names.empty()) return;
    add_note("not in the configuration; model_type " + described_type() + " has " + names, model_);
  }

  void add_heads() {
    const JsonValue* written = fields_.find("num_attention_heads");
    const bool listed = written != nullptr && written->kind == Kind::Array;  // a number a layer
    const double heads = listed ? 0 : fields_.amount("num_attention_heads").value_or(0);
    const bool newer = fields_.is_true("new_decoder_architecture");
    if (fields_.is_true("multi_query") && !newer) put("kv_heads", json_number(1));
    const double hidden = fields_.amount("hidden_size").value_or(0);
    const double size = fields_.amount("head_dim").value_or(heads > 0 ? hidden / heads : 0);
    if (const auto ratio = fields_.amount("expansion_ratio")) {
      put("ffn_hidden_size", json_number(*ratio * hidden));
    }
    if (fields_.find("no_bias") && !fields_.is_true("no_bias")) {
      fields_.refuse("no_bias", "one with biases is not known here; expected true");
    }
    const JsonValue* norms_first = fields_.find("do_layer_norm_before");  // OPT's, but for one size
    if (norms_first != nullptr && !norms_first->boolean) put("norm_position", json_text("post"));
    if (fields_.amount("word_embed_proj_dim").value_or(hidden) != hidden) {
      fields_.refuse("word_embed_proj_dim",
                     "words of another width than hidden_size are not known here; expected " +
                         described(json_number(hidden)));
    }
    if (const auto turned = fields_.amount("rotary_dim"); turned && size > 0) {
      put("rotary_share", json_number(std::min(*turned / size, 1.0)));
    }
    if (fields_.is_true("alibi")) model_.find("positions")->text = "none";
    // Granite's hybrids, whose class has no positions unless the field says so.
    if (fields_.word("position_embedding_type") == "rope") {
      model_.find("positions")->text = "rotary";
    }
    const bool single = fields_.is_true("use_parallel_residual") && !newer;
    if (fields_.find("new_decoder_architecture") && single) put("shared_norm", json_boolean(true));
  }

  /// DeepSeek-V4: streams, layers whose experts words say, and heads that share one key.
  void add_streams() {
    if (!sees_entries(fields_)) return;
    if (fields_.amount("hc_mult").value_or(1) > 1) {
      put("hyper_connections", json_object({{"streams", *fields_.find("hc_mult")}}));
    }
    double hashed = fields_.amount("num_hash_layers").value_or(3);  // the default of the class
    const JsonValue* kinds = fields_.find("mlp_layer_types");
    if (kinds != nullptr && !fields_.find("num_hash_layers")) {
      const auto first = std::ranges::find_if(
          kinds->items, [](const JsonValue& kind) { return kind.text != "hash_moe"; });
      hashed = static_cast<double>(first - kinds->items.begin());
    }
    if (hashed > 0) put("hash_layers", json_number(hashed));
    std::erase_if(model_.members, [](const JsonMember& member) {
      return member.first == "kv_heads" || is_rotary_share(member);
    });
  }

  /// Latents say what heads are: what else the fields say of them is the same once more.
  void add_latents() {
    if (!fields_.find("kv_lora_rank")) return;
    JsonValue latents = placed({.kind = Kind::Object});
    copy(kLatentCopies, latents);
    if (fields_.is_true("index_topk")) {
      JsonValue selection = placed({.kind = Kind::Object});
      copy(kSelectionCopies, selection);
      latents.members.emplace_back("selection", std::move(selection));
    }
    put("latent_attention", latents);
    std::erase_if(model_.members, [](const JsonMember& member) {
      return member.first == "kv_heads" || member.first == "head_size" || is_rotary_share(member);
    });
  }

  void add_experts() {
    if (!fields_.is_true("n_routed_experts")) {
      std::erase_if(model_.members, [](const JsonMember& m) {
        return m.first == "router_bias" || m.first == "expert_bias";
      });
      // Granite's hybrids: without experts, what all tokens share is the MLP.
      const JsonValue* shared = fields_.find("shared_expert_intermediate_size");
      if (shared != nullptr) put("ffn_hidden_size", *shared);
      return;
    }
    copy(kExpertCopies, model_);
    if (fields_.is_true("moe_latent_size")) {
      put("expert_latent_size", *fields_.find("moe_latent_size"));
    }
    // DeepSeek-V2 Lite names groups, and takes the best of all experts.
    const JsonValue* method = fields_.find("topk_method");
    const bool of_all = method != nullptr && method->text == "greedy";
    if (!of_all && fields_.amount("n_group").value_or(1) > 1) copy(kGroupCopies, model_);
    if (const JsonValue* dense = fields_.find("intermediate_size_mlp")) {  // Llama 4
      put("expert_ffn_hidden_size", *fields_.find("intermediate_size"));
      put("ffn_hidden_size", *dense);
      put("shared_experts", json_number(1));
    }
    add_shared_experts();
  }

  /// Puts in shared experts, as many as their width is in experts; Qwen's are weighed by a gate.
  void add_shared_experts() {
    const auto shared = fields_.amount("shared_expert_intermediate_size");
    if (!shared || *shared == 0) return;
    if (!fields_.find("n_shared_experts")) put("shared_expert_gate", json_boolean(true));
    const double size = fields_.amount("moe_intermediate_size").value_or(0);
    const bool several = size > 0 && std::fmod(*shared, size) == 0;
    put("shared_experts", json_number(several ? *shared / size : 1));
    if (several) return;
    put("shared_expert_ffn_hidden_size", *fields_.find("shared_expert_intermediate_size"));
  }

  void add_mixers() {
    copy_object(kGatedDeltaCopies, "gated_delta");
    if (fields_.find("mamba_num_heads")) {
      copy_object(kMamba2Copies, "mamba2");
      put_head_size(*model_.find("mamba2"));
    } else {
      copy_object(kMambaCopies, "mamba");
    }
    for (const auto& [field, value] : kFixed) {
      if (!fields_.find(field) || fields_.is_true(field) == value) continue;
      fields_.refuse(field, "not as this mixer is modelled; expected " +
                                std::string(value ? "true" : "false"));
    }
    JsonValue* mamba = model_.find("mamba");
    if (mamba == nullptr) return;
    put("norms", placed(json_boolean(true)), *mamba);  // Jamba's
    const JsonValue* rank = fields_.find("mamba_dt_rank");
    if (rank && rank->kind == Kind::Number) put("dt_rank", *rank, *mamba);
  }

  /// Puts in what "auto" stands for: heads share the expanded width.
  void put_head_size(JsonValue& mamba2) const {
    if (fields_.word("mamba_head_dim") != "auto") return;
    const double inner =
        fields_.amount("mamba_expand").value_or(2) * fields_.amount("hidden_size").value_or(0);
    const double heads = fields_.amount("mamba_num_heads").value_or(0);
    put("head_size", placed(json_number(heads > 0 ? std::floor(inner / heads) : 0)), mamba2);
  }

  /// Takes away the sizes of Mamba 2 where no layer has it, and those of attention where all have:
  /// Granite's files name both.
  void drop_unused_sizes() {
    const auto uses = [](const JsonValue& form) {
      const JsonValue* mixer = form.find("attention");
      return mixer != nullptr && mixer->text == "mamba2";
    };
    const JsonValue* pattern = model_.find("layer_pattern");
    const bool everywhere = uses(model_);
    const bool somewhere = pattern != nullptr && std::ranges::any_of(pattern->items, uses);
    std::erase_if(model_.members, [&](const JsonMember& one) {
      const bool of_attention = one.first == "attention_heads" || one.first == "kv_heads";
      return everywhere ? of_attention : !somewhere && one.first == "mamba2";
    });
  }

  void add_dropout() {
    double most = 0;
    for (const std::string_view name : kDropouts) {
      most = std::max(most, fields_.amount(name).value_or(0));
    }
    put("dropout", json_number(most));
  }

  /// T5's encoder, whose layers are the decoder's but for their number.
  void add_source() {
    if (!fields_.is_true("is_encoder_decoder")) return;
    const bool gated = fields_.word("feed_forward_proj").starts_with("gated-");
    put("gated_mlp", json_boolean(gated || fields_.is_true("is_gated_act")));
    put("position_buckets", *fields_.find("relative_attention_num_buckets"));
    JsonValue encoder = placed({.kind = Kind::Object});
    for (const std::string_view key : kSourceKeys) {
      if (const JsonValue* value = model_.find(key)) put(key, *value, encoder);
    }
    if (const JsonValue* layers = fields_.find("num_decoder_layers")) put("layers", *layers);
    put("encoder", std::move(encoder));
    add_note(kSourceNote, model_);
  }

  /// DeepSeek's and GLM's number of further layers; MiniMax's modules of several layers.
  void add_later_tokens() {
    double layers = fields_.amount("num_nextn_predict_layers").value_or(0);
    if (fields_.is_true("use_mtp")) {
      layers = fields_.amount("num_mtp_modules").value_or(1) *
               fields_.amount("mtp_transformer_layers").value_or(1);
    }
    if (layers == 0) return;
    JsonValue later = json_object({{"layers", json_number(layers)}});
    if (sees_entries(fields_)) {
      const auto behind = static_cast<int>(fields_.amount("num_hidden_layers").value_or(0));
      JsonValue form = json_object({});
      append_entries(fields_, behind, form.members);
      later.members.push_back({"form", std::move(form)});
    }
    put("multi_token_prediction", std::move(later));
  }

  /// The class that is meant to be trained, and how many classes it tells apart.
  void add_readout() {
    const bool images = fields_.find("image_size") != nullptr;
    if (!images && !fields_.find("type_vocab_size")) return;
    const JsonValue& config = *fields_.config().value;
    const JsonValue* list = config.find("architectures");
    const bool named = list != nullptr && !list->items.empty();
    const std::string name = named ? list->items.front().text : "";
    if (!images && !name.ends_with("ForSequenceClassification")) {
      put("readout", json_text("masked-lm"));
      return;
    }
    put("readout", json_text("classes"));
    if (!images) put("pooler", json_boolean(true));
    const JsonValue* labels = config.find("id2label");
    const JsonValue* count = config.find("num_labels");
    const double known = labels != nullptr ? static_cast<double>(labels->members.size()) : 2;
    put("classes", count != nullptr ? *count : json_number(known));
  }

  /// How many positions there are, and the length of samples if that can be meant.
  void add_positions() {
    const JsonValue* rope = fields_.config().value->find("rope_parameters");
    const JsonValue* share = rope ? rope->find("partial_rotary_factor") : nullptr;
    if (share != nullptr) put("rotary_share", *share);
    const JsonValue* kind = model_.find("positions");
    const bool turns = kind != nullptr && kind->text == "rotary";
    const bool counted = kind == nullptr || kind->text == "learned";
    if (!turns) std::erase_if(model_.members, is_rotary_share);
    const JsonValue* own = fields_.config().value->find("sequence_length");
    if (own != nullptr) put("sequence_length", *own);
    const JsonValue* positions = fields_.find("max_position_embeddings");
    if (positions == nullptr) {
      if (own == nullptr && !fields_.find("patch_size")) put("sequence_length", JsonValue());
      return;
    }
    if (counted) put("max_positions", *positions);
    if (own != nullptr) return;
    const auto most = fields_.amount("max_position_embeddings");
    const bool meant = most.value_or(0) <= kLongestAssumed;
    JsonValue length = meant ? *positions : JsonValue();
    if (!meant) place_at(*positions, length);
    put("sequence_length", length, model_);
    if (!meant || positions->written) return;
    add_note(std::string(kNoLength) + "samples of " + described(length) +
                 " tokens are assumed, the default of model_type " + described_type() +
                 "; for others --sequence-length N or --set model.sequence_length=N",
             model_);
  }
  static bool is_rotary_share(const JsonMember& member) { return member.first == "rotary_share"; }

  ConfigFields fields_;
  JsonValue model_;
  std::vector<std::string> traits_;
  std::vector<std::string> notes_;
};

/// Reports a class that is known not to be modelled, in one sentence. Returns true if it is such.
bool refuse_unmodelled(const JsonNode& config, Diagnostics& diagnostics) {
  const JsonValue* name = config.value->find("model_type");
  if (name == nullptr) return false;
  const auto types = unmodelled_types();
  const auto found = std::ranges::find(types, name->text, &UnmodelledType::name);
  if (found == types.end()) return false;
  report(diagnostics, config.child("model_type"),
         "models of " + in_quotes(name->text) + " have " + std::string(found->lacks) +
             ", which no key says; expected another model of its size, or the nearest in keys of "
             "\"kind\": \"transformer\"");
  return true;
}

/// Returns the name of the part that reads text, where a configuration has several.
const char* text_part(const JsonValue& config) {
  for (const char* name : {"llm_config", "language_config"}) {
    const JsonValue* part = config.find(name);
    if (part != nullptr && part->kind == Kind::Object) return name;
  }
  return "text_config";
}

const ConfigType* type_of(const JsonValue& config) {
  const JsonValue* name = config.find("model_type");
  if (name == nullptr) return nullptr;
  const auto found = std::ranges::find(config_types(), name->text, &ConfigType::name);
  return found != config_types().end() ? &*found : nullptr;
}

/// Adds the encoder of a model that sees, or a note that it is left out.
void add_images(const JsonNode& config, JsonValue& model, Diagnostics& diagnostics) {
  if (!config.value->find("vision_config")) return;
  const ConfigType* tower = tower_type(*config.value);
  const JsonValue* width = model.find("hidden_size");
  if (tower == nullptr || width == nullptr) return add_note(kNoImages, model);
  const JsonValue* features = config.value->find("vision_feature_layer");
  if (features != nullptr && features->items.size() > 1) {
    report(diagnostics, config.child("vision_feature_layer"),
           "features of " + std::to_string(features->items.size()) +
               " layers side by side are not known here; expected one layer, e.g. -2");
  }
  const JsonNode node = config.child("vision_config");
  JsonValue encoder = Translation(node, tower, diagnostics).encoder(*config.value, *width);
  if (const JsonValue* notes = encoder.find("notes")) {
    for (const JsonValue& note : notes->items) add_note(note.text, model);
    std::erase_if(encoder.members, [](const JsonMember& one) { return one.first == "notes"; });
  }
  add_note(note_on_images(encoder), model);
  model.members.push_back({"encoder", std::move(encoder)});
}

}  // namespace

bool is_config(const JsonValue& object) {
  return object.kind == Kind::Object && object.find("kind") == nullptr &&
         (object.find("model_type") != nullptr || object.find("text_config") != nullptr);
}

void drop_note_on_length(JsonValue& model) {
  JsonValue* notes = model.find("notes");
  if (notes == nullptr) return;
  std::erase_if(notes->items, [](const JsonValue& one) { return one.text.starts_with(kNoLength); });
}

std::optional<JsonValue> model_of_config(const JsonNode& config, Diagnostics& diagnostics) {
  const ConfigType* type = type_of(*config.value);
  const char* const part = text_part(*config.value);
  const JsonValue* inner = config.value->find(part);
  const bool has_own = type != nullptr && config.value->find("hidden_size") != nullptr;
  if (inner != nullptr && inner->kind == Kind::Object && !has_own) {
    auto model = model_of_config(config.child(part), diagnostics);
    const JsonValue* tied = config.value->find("tie_word_embeddings");
    if (model && tied != nullptr && !inner->find("tie_word_embeddings")) {
      std::erase_if(model->members,
                    [](const JsonMember& one) { return one.first == "tied_embeddings"; });
      model->members.push_back({"tied_embeddings", *tied});
    }
    const std::size_t before = diagnostics.messages().size();
    if (model) add_images(config, *model, diagnostics);
    if (diagnostics.messages().size() > before) return std::nullopt;
    return model;
  }
  if (refuse_unmodelled(config, diagnostics)) return std::nullopt;
  const std::size_t before = diagnostics.messages().size();
  Translation translation(config, type, diagnostics);
  JsonValue model = translation.model();
  add_images(config, model, diagnostics);
  if (diagnostics.messages().size() > before) return std::nullopt;
  return model;
}

}  // namespace interlock
