// Config types: the table of model_types.
// SPDX-License-Identifier: Apache-2.0
#include "models/config_types.h"

namespace interlock {
namespace {

constexpr std::string_view kLlamaTraits =
    R"({"norm": "rmsnorm", "gated_mlp": true, "bias": false, "positions": "rotary"})";
constexpr std::string_view kQwen2Traits =
    R"({"norm": "rmsnorm", "gated_mlp": true, "bias": false, "positions": "rotary", "qkv_bias":
        true})";
constexpr std::string_view kQwen3Traits =
    R"({"norm": "rmsnorm", "gated_mlp": true, "bias": false, "positions": "rotary", "qk_norm":
        true})";
constexpr std::string_view kDeepSeekV3Traits =
    R"({"norm": "rmsnorm", "gated_mlp": true, "bias": false, "positions": "rotary",
        "router_bias": true})";
constexpr std::string_view kDeepSeekV3Fields =
    R"({"vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432,
        "num_hidden_layers": 61, "num_attention_heads": 128, "max_position_embeddings": 4096,
        "attention_bias": false, "attention_dropout": 0, "tie_word_embeddings": false,
        "first_k_dense_replace": 3, "moe_layer_freq": 1, "kv_lora_rank": 512, "q_lora_rank":
        1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "num_key_value_heads": null, "rotary_pct": null, "head_dim": null, "n_routed_experts":
        256, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
        "num_nextn_predict_layers": null})";
constexpr std::string_view kQwen25VlFields =
    R"({"vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568,
        "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
        "head_dim": null, "max_position_embeddings": 32768, "tie_word_embeddings": false,
        "use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 28,
        "layer_types": null, "attention_dropout": 0})";

constexpr ConfigType kTypes[] = {
    {"bert", R"({"norm_position": "post", "embedding_norm": true, "bidirectional": true})",
     R"({"vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12,
         "num_attention_heads": 12, "intermediate_size": 3072, "hidden_dropout_prob": 0.1,
         "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 512, "type_vocab_size":
         2, "tie_word_embeddings": true})"},
    {"deepseek_v2", kLlamaTraits,
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
         "num_hidden_layers": 32, "num_attention_heads": 32, "max_position_embeddings": 2048,
         "attention_bias": false, "attention_dropout": 0, "tie_word_embeddings": false,
         "mlp_bias": false, "head_dim": null, "first_k_dense_replace": 0, "moe_layer_freq": 1,
         "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim":
         64, "v_head_dim": 128, "num_key_value_heads": null, "rotary_pct": null,
         "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": null,
         "moe_intermediate_size": 1407})"},
    {"deepseek_v3", kDeepSeekV3Traits, kDeepSeekV3Fields},
    {"glm4_moe",
     R"({"norm": "rmsnorm", "gated_mlp": true, "mlp_bias": false, "positions": "rotary",
         "projection_bias": false, "router_bias": true})",
     R"({"vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 10944,
         "num_hidden_layers": 46, "num_attention_heads": 96, "num_key_value_heads": 8,
         "head_dim": 128, "max_position_embeddings": 131072, "attention_bias": false,
         "attention_dropout": 0, "tie_word_embeddings": false, "rotary_pct": 0.5, "use_qk_norm":
         false, "moe_intermediate_size": 1408, "num_experts_per_tok": 8, "n_shared_experts": 1,
         "n_routed_experts": 128, "first_k_dense_replace": 1, "num_nextn_predict_layers": null})"},
    {"gpt2", R"({"bias": true})",
     R"({"vocab_size": 50257, "max_position_embeddings": 1024, "hidden_size": 768,
         "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": null,
         "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1, "tie_word_embeddings": true})"},
    {"gpt_bigcode", R"({"bias": true})",
     R"({"vocab_size": 50257, "max_position_embeddings": 1024, "hidden_size": 768,
         "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": null,
         "multi_query": true, "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1,
         "tie_word_embeddings": true})"},
    {"gpt_neox", R"({"bias": true, "positions": "rotary"})",
     R"({"vocab_size": 50432, "hidden_size": 6144, "num_hidden_layers": 44,
         "num_attention_heads": 64, "intermediate_size": 24576, "attention_dropout": 0,
         "hidden_dropout": 0, "max_position_embeddings": 2048, "tie_word_embeddings": false,
         "use_parallel_residual": true, "rotary_pct": 0.25, "attention_bias": true})"},
    {"granite", kLlamaTraits,
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": null,
         "max_position_embeddings": 2048, "attention_bias": false, "attention_dropout": 0,
         "tie_word_embeddings": false, "mlp_bias": false})"},
    {"granitemoe", kLlamaTraits,
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": null,
         "max_position_embeddings": 2048, "attention_bias": false, "attention_dropout": 0,
         "tie_word_embeddings": false, "mlp_bias": false, "n_routed_experts": 8,
         "num_experts_per_tok": 2})"},
    {"kimi_k2", kDeepSeekV3Traits, kDeepSeekV3Fields},
    {"llama", kLlamaTraits,
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": null,
         "max_position_embeddings": 2048, "tie_word_embeddings": false, "attention_bias": false,
         "attention_dropout": 0, "mlp_bias": false, "head_dim": null})"},
    {"mistral", kLlamaTraits,
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
         "head_dim": null, "max_position_embeddings": 131072, "tie_word_embeddings": false,
         "sliding_window": 4096, "attention_dropout": 0})"},
    {"mixtral", kLlamaTraits,
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
         "head_dim": null, "max_position_embeddings": 131072, "tie_word_embeddings": false,
         "sliding_window": null, "attention_dropout": 0, "num_experts_per_tok": 2,
         "n_routed_experts": 8})"},
    {"nemotron", R"({"norm": "layernorm", "gated_mlp": false, "positions": "rotary"})",
     R"({"vocab_size": 256000, "hidden_size": 6144, "intermediate_size": 24576,
         "num_hidden_layers": 32, "num_attention_heads": 48, "num_key_value_heads": null,
         "head_dim": null, "max_position_embeddings": 4096, "attention_bias": false,
         "attention_dropout": 0, "tie_word_embeddings": false, "mlp_bias": false, "rotary_pct":
         0.5})"},
    {"phi3", kLlamaTraits,
     R"({"vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": null,
         "max_position_embeddings": 4096, "tie_word_embeddings": false, "attention_dropout": 0,
         "embd_pdrop": 0, "resid_pdrop": 0, "sliding_window": null, "rotary_pct": null})"},
    {"qwen2", kQwen2Traits,
     R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
         "head_dim": null, "max_position_embeddings": 32768, "tie_word_embeddings": false,
         "use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 28,
         "layer_types": null, "attention_dropout": 0})"},
    {"qwen2_5_vl", kQwen2Traits, kQwen25VlFields},
    {"qwen2_5_vl_text", kQwen2Traits, kQwen25VlFields},
    {"qwen2_moe", kLlamaTraits,
     R"({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632,
         "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16,
         "max_position_embeddings": 32768, "tie_word_embeddings": false, "use_sliding_window":
         false, "sliding_window": 4096, "max_window_layers": 28, "layer_types": null,
         "attention_dropout": 0, "qkv_bias": true, "decoder_sparse_step": 1, "mlp_only_layers":
         null, "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632,
         "num_experts_per_tok": 4, "n_routed_experts": 60})"},
    {"qwen3", kQwen3Traits,
     R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
         "head_dim": 128, "max_position_embeddings": 32768, "tie_word_embeddings": false,
         "attention_bias": false, "use_sliding_window": false, "sliding_window": 4096,
         "max_window_layers": 28, "layer_types": null, "attention_dropout": 0})"},
    {"qwen3_moe", kQwen3Traits,
     R"({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144,
         "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads": 4,
         "head_dim": null, "max_position_embeddings": 32768, "attention_bias": false,
         "attention_dropout": 0, "tie_word_embeddings": false, "use_sliding_window": false,
         "sliding_window": 4096, "max_window_layers": 28, "layer_types": null, "use_qk_norm":
         true, "decoder_sparse_step": 1, "mlp_only_layers": null, "moe_intermediate_size": 768,
         "num_experts_per_tok": 8, "n_routed_experts": 128})"},
    {"stablelm",
     R"({"norm": "layernorm", "gated_mlp": true, "bias": false, "positions": "rotary"})",
     R"({"vocab_size": 50304, "hidden_size": 2560, "intermediate_size": 6912,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
         "max_position_embeddings": 4096, "tie_word_embeddings": false, "qkv_bias": false,
         "hidden_dropout": 0, "attention_dropout": 0, "rotary_pct": 0.25})"},
    {"starcoder2", R"({"positions": "rotary"})",
     R"({"vocab_size": 49152, "hidden_size": 3072, "intermediate_size": 12288,
         "num_hidden_layers": 30, "num_attention_heads": 24, "num_key_value_heads": 2,
         "max_position_embeddings": 4096, "tie_word_embeddings": true, "bias": true,
         "sliding_window": null, "attention_dropout": 0, "residual_dropout": 0,
         "embedding_dropout": 0})"},
    {"vit", R"({"bias": true})",
     R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
         "intermediate_size": 3072, "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0,
         "image_size": 224, "patch_size": 16, "num_channels": 3, "qkv_bias": true})"},
};

}  // namespace

std::span<const ConfigType> config_types() { return kTypes; }

}  // namespace interlock
