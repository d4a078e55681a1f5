// Config fields: names of fields, and what becomes of each.
// SPDX-License-Identifier: Apache-2.0
#include "models/config_fields.h"

#include <algorithm>

#include "base/text.h"

namespace interlock {
namespace {

using Kind = JsonValue::Kind;

/// Another name of a field.
struct Alias {
  std::string_view name, field;
};
constexpr Alias kAliases[] = {
    {"n_embd", "hidden_size"},
    {"n_embed", "hidden_size"},
    {"d_model", "hidden_size"},
    {"model_dim", "hidden_size"},
    {"dim", "hidden_size"},
    {"hidden_dim", "intermediate_size"},
    {"activation", "hidden_act"},
    {"tie_weights_", "tie_word_embeddings"},
    {"depth", "num_hidden_layers"},
    {"num_transformer_layers", "num_hidden_layers"},
    {"n_layer", "num_hidden_layers"},
    {"n_layers", "num_hidden_layers"},
    {"num_layers", "num_hidden_layers"},
    {"n_head", "num_attention_heads"},
    {"n_heads", "num_attention_heads"},
    {"num_heads", "num_attention_heads"},
    {"num_query_heads", "num_attention_heads"},
    {"n_head_kv", "num_key_value_heads"},
    {"kv_n_heads", "num_key_value_heads"},
    {"num_kv_heads", "num_key_value_heads"},
    {"n_kv_heads", "num_key_value_heads"},
    {"attention_head_dim", "head_dim"},
    {"d_kv", "head_dim"},
    {"n_positions", "max_position_embeddings"},
    {"max_seq_len", "max_position_embeddings"},
    {"max_context_length", "max_position_embeddings"},
    {"n_inner", "intermediate_size"},
    {"d_ff", "intermediate_size"},
    {"ffn_dim", "intermediate_size"},
    {"ffn_hidden_size", "intermediate_size"},
    {"num_experts", "n_routed_experts"},
    {"num_local_experts", "n_routed_experts"},
    {"moe_num_experts", "n_routed_experts"},
    {"experts_per_token", "num_experts_per_tok"},
    {"moe_k", "num_experts_per_tok"},
    {"moe_topk", "num_experts_per_tok"},
    {"moe_top_k", "num_experts_per_tok"},
    {"num_shared_experts", "n_shared_experts"},
    {"num_shared_expert", "n_shared_experts"},
    {"moe_num_shared_experts", "n_shared_experts"},
    {"moe_shared_expert_intermediate_size", "shared_expert_intermediate_size"},
    {"shared_intermediate_size", "shared_expert_intermediate_size"},
    {"mtp_num_hidden_layers", "num_nextn_predict_layers"},
    {"partial_rotary_factor", "rotary_pct"},
    {"parallel_attn", "use_parallel_residual"},
    {"moe_router_enable_expert_bias", "use_routing_bias"},
    {"mamba_n_heads", "mamba_num_heads"},
    {"mamba_d_head", "mamba_head_dim"},
    {"mamba_n_groups", "n_groups"},
    {"mamba_chunk_size", "chunk_size"},
    {"layers_block_type", "layer_types"},
    {"use_qkv_bias", "qkv_bias"},
    {"add_qkv_bias", "qkv_bias"},
    {"use_bias", "bias"},
    {"qk_layernorm", "use_qk_norm"},
    {"qk_norm", "use_qk_norm"},
    {"normalize_qk_projections", "use_qk_norm"},
    {"share_input_output_layers", "tie_word_embeddings"},
    {"hidden_activation", "hidden_act"},
    {"activation_function", "hidden_act"},
    {"layer_norm_eps", "layer_norm_epsilon"},
    {"norm_epsilon", "layer_norm_epsilon"},
    {"attn_output_gate", "attention_gate"},
    {"hybrid_layer_pattern", "hybrid_override_pattern"},
    {"dropout_rate", "hidden_dropout"},
    {"emb_pdrop", "embd_pdrop"},
    {"dropout", "hidden_dropout"},
    {"in_channels", "num_channels"},
    {"in_chans", "num_channels"},
};

/// Fields that shape some model; a class has those of its `fields`.
constexpr std::string_view kShaping[] = {
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "intermediate_size_mlp",
    "ffn_multipliers",
    "ffn_dim_divisor",
    "ffn_with_glu",
    "max_position_embeddings",
    "tie_word_embeddings",
    "type_vocab_size",
    "bias",
    "attention_bias",
    "attention_out_bias",
    "qkv_bias",
    "mlp_bias",
    "use_qk_norm",
    "use_parallel_residual",
    "new_decoder_architecture",
    "alibi",
    "multi_query",
    "rotary_pct",
    "rotary_dim",
    "attention_gate",
    "sliding_window",
    "use_sliding_window",
    "max_window_layers",
    "sliding_window_pattern",
    "layer_types",
    "attention_chunk_size",
    "no_rope_layers",
    "no_rope_layer_interval",
    "n_routed_experts",
    "num_experts_per_tok",
    "n_shared_experts",
    "n_group",
    "topk_group",
    "topk_method",
    "moe_intermediate_size",
    "moe_latent_size",
    "shared_expert_intermediate_size",
    "first_k_dense_replace",
    "moe_layer_freq",
    "moe_layers",
    "interleave_moe_layer_step",
    "decoder_sparse_step",
    "mlp_only_layers",
    "mlp_layer_types",
    "expert_layer_period",
    "expert_layer_offset",
    "attn_layer_period",
    "attn_layer_offset",
    "moe_layer_start_index",
    "moe_layer_end_index",
    "moe_layer_interval",
    "use_routing_bias",
    "kv_lora_rank",
    "compress_ratios",
    "compress_rates",
    "o_groups",
    "o_lora_rank",
    "hc_mult",
    "num_hash_layers",
    "index_topk",
    "index_n_heads",
    "index_head_dim",
    "q_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
    "num_nextn_predict_layers",
    "use_mtp",
    "num_mtp_modules",
    "mtp_transformer_layers",
    "hybrid_override_pattern",
    "full_attention_interval",
    "block_configs",
    "linear_conv_kernel_dim",
    "linear_key_head_dim",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_value_head_dim",
    "ssm_state_size",
    "conv_kernel",
    "chunk_size",
    "mamba_head_dim",
    "mamba_num_heads",
    "n_groups",
    "mamba_proj_bias",
    "use_conv_bias",
    "mamba_d_state",
    "mamba_d_conv",
    "mamba_expand",
    "mamba_dt_rank",
    "mamba_conv_bias",
    "image_size",
    "patch_size",
    "num_channels",
    "resid_pdrop",
    "embd_pdrop",
    "attn_pdrop",
    "hidden_dropout",
    "hidden_dropout_prob",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "residual_dropout",
    "embedding_dropout",
    "output_dropout",
    // Known of unknown classes only: what kind of norm and of MLP they have, and which positions.
    "hidden_act",
    "rms_norm_eps",
    "layer_norm_epsilon",
    "rope_theta",
    "rope_scaling",
    "rope_parameters",
};
/// Fields among these that repeat what a known class says, or that its routing does not read.
constexpr std::string_view kSaidByClass[] = {"hidden_act", "rms_norm_eps", "layer_norm_epsilon",
                                             "rope_theta", "rope_scaling", "rope_parameters",
                                             "n_group",    "topk_group",   "topk_method"};

/// Fields in which null says something; elsewhere it stands for the default.
constexpr std::string_view kNullable[] = {
    "num_key_value_heads", "head_dim",         "intermediate_size", "sliding_window",
    "q_lora_rank",         "n_routed_experts", "n_shared_experts",  "num_experts_per_tok"};

/// Fields that become keys whose rows of the contract say the range: that alone is told of a
/// mistake.
constexpr std::string_view kRangedByKey[] = {
    "hidden_size", "num_hidden_layers", "num_attention_heads",   "head_dim",
    "n_group",     "mamba_num_heads",   "moe_intermediate_size", "max_position_embeddings"};

/// Fields that some classes write as a list with an entry for each layer, all of them alike.
constexpr std::string_view kListed[] = {"n_routed_experts", "num_experts_per_tok",
                                        "n_shared_experts", "moe_intermediate_size"};

/// Fields that shape a model as no key of ours can say.
constexpr std::string_view kUnmodelled[] = {"is_encoder_decoder",    "add_cross_attention",
                                            "index_topk_freq",       "indexer_types",
                                            "lm_head_bias",          "laurel_rank",
                                            "num_kv_shared_layers",  "mtp_hybrid_override_pattern",
                                            "mtp_layers_block_type", "hidden_size_per_layer_input"};

/// Fields that change neither time nor memory of a training.
constexpr std::string_view kSilent[] = {
    "sequence_length",  // no field: a key of ours, which --sequence-length puts there
    "architectures",
    "model_type",
    "auto_map",
    "name_or_path",
    "_name_or_path",
    "transformers_version",
    "tokenizer_class",
    "dtype",
    "torch_dtype",
    "_attn_implementation",
    "attn_implementation",
    "cache_implementation",
    "use_cache",
    "quantization_config",
    "id2label",
    "label2id",
    "num_labels",
    "classifier_dropout",
    "qa_dropout",
    "seq_classif_dropout",
    "problem_type",
    "task_specific_params",
    "gradient_checkpointing",
    "is_decoder",
    "position_embedding_type",
    "n_ctx",
    "n_special",
    "predict_special_tokens",
    "original_max_position_embeddings",
    "initial_context_length",
    "max_length",
    "initializer_range",
    "initializer_factor",
    "norm_eps",
    "norm_type",
    "mlp_type",
    "normalization_function",
    "init_method",
    "rescale_prenorm_residual",
    "residual_in_fp32",
    "fp32_residual_connection",
    "attention_softmax_in_fp32",
    "scale_attention_softmax_in_fp32",
    "scale_attn_weights",
    "softmax_scale",
    "clip_qkv",
    "attn_type",
    "attn_impl",
    "alibi_bias_max",
    "moe_loss_weight",
    "scale_attn_by_inverse_layer_idx",
    "reorder_and_upcast_attn",
    "apply_residual_connection_post_layernorm",
    "pretraining_tp",
    "ep_size",
    "rotary",
    "rotary_emb_base",
    "rope_local_base_freq",
    "rope_freq_constant",
    "rope_max_length",
    "qkv_multipliers",
    "num_gqa_groups",
    "activation_fn_name",
    "normalization_layer_name",
    "rope_interleave",
    "query_pre_attn_scalar",
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "attn_temperature_tuning",
    "attn_scale",
    "floor_scale",
    "attention_multiplier",
    "embedding_multiplier",
    "residual_multiplier",
    "logits_scaling",
    "logit_scale",
    "swiglu_limit",
    "hc_sinkhorn_iters",
    "compress_rope_theta",
    "expert_dtype",
    "full_attn_mod",
    "interpolate_factor",
    "norm_topk_prob",
    "scoring_func",
    "score_function",
    "moe_gate_act",
    "moe_use_aux_free",
    "router_dtype",
    "moe_router_dtype",
    "moe_drop_tokens",
    "moe_random_routing_dropped_token",
    "moe_capacity",
    "routed_scaling_factor",
    "seq_aux",
    "aux_loss_alpha",
    "router_aux_loss_coef",
    "router_z_loss_coef",
    "router_jitter_noise",
    "output_router_logits",
    "qk_norm_type",
    "num_logits_to_keep",
    "expand",
    "time_step_floor",
    "time_step_limit",
    "time_step_max",
    "time_step_min",
    "time_step_rank",
    "mamba_hidden_act",
    "mamba_ssm_cache_dtype",
    "mamba_ssm_dtype",
    "mlp_hidden_act",
    "use_mamba_kernels",
    "moe_shared_expert_overlap",
    "mtp_use_dedicated_embeddings",
    "sliding_window_size",
    "runner_max_sequence_length",
    "mm_tokens_per_image",
    "text_config",
    "vision_config",
    "dense_act_fn",
    "relative_attention_max_distance",
    "output_past",
    // In towers that read images, and beside them:
    "spatial_patch_size",
    "tokens_per_second",
    "vision_use_head",
    "vision_feature_layer",
    "vision_feature_select_strategy",
    "multi_modal_projector_bias",
    "projection_dim",
    "projection_dropout",
    "projector_dropout",
    "layer_scale_init_value",
    "use_absolute_position_embeddings",
    "use_mask_token",
    "use_mean_pooling",
    "encoder_stride",
    "tie_encoder_decoder",
    // How text is made:
    "length_penalty",
    "num_beams",
    "num_beam_groups",
    "num_return_sequences",
    "repetition_penalty",
    "return_dict",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
};
/// Ends of names that are silent: numbers of tokens, and settings of a summary head of GPT-2's.
constexpr std::string_view kSilentEnds[] = {"_token_id", "_token_index", "_eps", "_range",
                                            "_norm_min"};

template <std::size_t N>
bool is_among(const std::string_view (&list)[N], std::string_view name) {
  return std::ranges::find(list, name) != std::end(list);
}

std::string_view field_name(std::string_view name) {
  for (const Alias& alias : kAliases) {
    if (alias.name == name) return alias.field;
  }
  return name;
}

bool is_silent(std::string_view name) {
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  return is_among(kSilent, name) || std::ranges::any_of(kSilentEnds, ends) ||
         name.starts_with("summary_");
}

/// Returns true for values that say that there is nothing.
bool says_none(const JsonValue& value) {
  switch (value.kind) {
    case Kind::Null:
      return true;
    case Kind::Boolean:
      return !value.boolean;
    case Kind::Number:
      return value.number == 0;
    case Kind::String:
      return value.text.empty();
    case Kind::Array:
      return value.items.empty();
    case Kind::Object:
      return value.members.empty();
  }
  return false;
}

/// Names classes that know a field, for a message.
std::string classes_with(std::string_view field) {
  std::vector<std::string> names;
  for (const ConfigType& type : config_types()) {
    const JsonValue fields = parse_json(type.fields, "");
    if (fields.find(field) != nullptr && names.size() < 3) names.emplace_back(type.name);
  }
  return names.empty() ? "another one" : join_choices(names);
}

/// Returns the entry that stands for a list of entries which are all alike; else the value.
const JsonValue& entry_of(const JsonValue& value) {
  const auto same = [&](const JsonValue& one) {
    return one.kind == Kind::Number && one.number == value.items.front().number;
  };
  return !value.items.empty() && std::ranges::all_of(value.items, same) ? value.items.front()
                                                                        : value;
}

}  // namespace

ConfigFields::ConfigFields(const JsonNode& config, const ConfigType* type, Diagnostics& diagnostics)
    : config_(config), diagnostics_(diagnostics) {
  if (type != nullptr) fields_ = parse_json(type->fields, "").members;
  for (JsonMember& field : fields_) place_at(*config.value, field.second);
  for (const JsonMember& one : config.value->members) {
    const auto& [name, value] = one;
    // DBRX and MPT say in parts what others say beside each other.
    const bool is_part = name == "attn_config" || name == "ffn_config";
    if (!is_part || value.kind != Kind::Object) {
      read(config, one, type);
      continue;
    }
    for (const JsonMember& inner : value.members) read(config.child(name), inner, type);
  }
  count_layers();
  if (type == nullptr && !unknown_.empty()) refuse_unknown();
}

/// Newer files of Nemotron-H say the kind of each layer, and by that how many there are.
void ConfigFields::count_layers() {
  const auto layers = std::ranges::find(fields_, "num_hidden_layers", &JsonMember::first);
  const JsonValue* kinds = find("layer_types");
  if (layers == fields_.end() || find("hybrid_override_pattern") == nullptr) return;
  if (kinds == nullptr || kinds->items.empty() || layers->second.written != nullptr) return;
  layers->second.number = static_cast<double>(kinds->items.size());
}

/// An unknown class is known by its fields alone, so that each of them has to be.
void ConfigFields::refuse_unknown() const {
  constexpr std::size_t kMostNames = 6;
  std::vector<std::string> names;
  for (const std::string& name : unknown_) names.push_back(in_quotes(name));
  if (names.size() > kMostNames + 1) {
    const std::size_t others = names.size() - kMostNames;
    names.resize(kMostNames);
    names.push_back(std::to_string(others) + " others");
  }
  std::string listed;
  for (std::size_t i = 0; i < names.size(); ++i) {
    listed += (i == 0 ? "" : i + 1 < names.size() ? ", " : " and ") + names[i];
  }
  refuse_type(", and nothing is known here of " + listed + "; expected " +
              (unknown_.size() == 1 ? "it" : "them") +
              " taken out if neither time nor memory follow from " +
              (unknown_.size() == 1 ? "it" : "them") +
              ", or the model in keys of \"kind\": \"transformer\"");
}

std::optional<std::string> ConfigFields::nearest_type() const {
  const JsonValue* type = config_.value->find("model_type");
  if (!holds_text(type)) return std::nullopt;
  std::vector<std::string> names;
  for (const ConfigType& known : config_types()) names.emplace_back(known.name);
  return nearest(type->text, names);
}

void ConfigFields::refuse_type(const std::string& why) const {
  const JsonValue* type = config_.value->find("model_type");
  const std::optional<std::string> near = nearest_type();
  report(diagnostics_, type ? config_.child("model_type") : config_,
         "the model_type " + (type ? described(*type) : "(none)") + " is unknown" +
             (near ? " (did you mean " + in_quotes(*near) + "?)" : "") + why +
             (near ? "" : "; docs/models.md lists each model_type that is known"));
}

void ConfigFields::read(const JsonNode& place, const JsonMember& member, const ConfigType* type) {
  const auto& [name, value] = member;
  const std::string field(field_name(name));
  const auto known = std::ranges::find(fields_, field, &JsonMember::first);
  if (known != fields_.end()) {
    if (value.kind == Kind::Null && !is_among(kNullable, field)) return;
    known->second = is_among(kListed, field) ? entry_of(value) : value;
    known->second.written = std::make_shared<const std::string>(json_pointer(place.path, name));
    return;
  }
  if (is_among(kUnmodelled, field)) {
    if (says_none(value)) return;
    report(diagnostics_, place.child(name),
           described(value) +
               " shapes a model in a way that is not known here; expected it taken "
               "out, if a model without it will do");
    return;
  }
  if (!is_among(kShaping, field)) {
    if (is_silent(name) || says_none(value)) return;
    unknown_.push_back(name);
    return;
  }
  if (type == nullptr) {
    fields_.push_back({field, is_among(kListed, field) ? entry_of(value) : value});
    fields_.back().second.written =
        std::make_shared<const std::string>(json_pointer(place.path, name));
  } else if (!says_none(value) && !is_among(kSaidByClass, field) &&
             !(field == "use_qk_norm" && type->traits.find("\"qk_norm\"") != type->traits.npos)) {
    report(diagnostics_, place.child(name),
           described(value) + " shapes a model, but those of model_type " +
               in_quotes(std::string(type->name)) +
               " have no such field; expected it taken out, or a model_type that has it, e.g. " +
               classes_with(field));
  }
}

const JsonValue* ConfigFields::find(std::string_view field) const {
  const auto found = std::ranges::find(fields_, field, &JsonMember::first);
  const bool is = found != fields_.end() && found->second.kind != Kind::Null;
  return is ? &found->second : nullptr;
}

std::optional<double> ConfigFields::amount(std::string_view field) const {
  const JsonValue* value = find(field);
  if (value == nullptr) return std::nullopt;
  Diagnostics reported_elsewhere;
  if (is_among(kRangedByKey, field)) return read_number({value, ""}, 0, 1e12, reported_elsewhere);
  return read_number({value, json_pointer(config_.path, field)}, 0, 1e12, diagnostics_);
}

bool ConfigFields::is_true(std::string_view field) const {
  const JsonValue* value = find(field);
  return value != nullptr && !says_none(*value);
}

std::string ConfigFields::word(std::string_view field) const {
  const JsonValue* value = find(field);
  return value != nullptr ? value->text : "";
}

void ConfigFields::refuse(std::string_view field, const std::string& message) const {
  report(diagnostics_, {find(field), json_pointer(config_.path, field)}, message);
}

}  // namespace interlock
