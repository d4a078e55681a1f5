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
constexpr std::string_view kGemma2Traits =
    R"({"norm": "rmsnorm", "gated_mlp": true, "bias": false, "positions": "rotary",
        "norm_position": "both"})";
constexpr std::string_view kGemma3Traits =
    R"({"norm": "rmsnorm", "gated_mlp": true, "bias": false, "positions": "rotary",
        "norm_position": "both", "qk_norm": true})";
constexpr std::string_view kOlmo2Traits =
    R"({"norm": "rmsnorm", "gated_mlp": true, "bias": false, "positions": "rotary",
        "norm_position": "branch", "qk_norm": "whole"})";
constexpr std::string_view kDeepSeekV3Fields =
    R"({"vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432,
        "num_hidden_layers": 61, "num_attention_heads": 128, "max_position_embeddings": 4096,
        "attention_bias": false, "attention_dropout": 0, "tie_word_embeddings": false,
        "first_k_dense_replace": 3, "moe_layer_freq": 1, "kv_lora_rank": 512, "q_lora_rank":
        1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "num_key_value_heads": null, "rotary_pct": null, "head_dim": null, "n_routed_experts":
        256, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
        "n_group": null, "topk_group": null, "topk_method": null,
        "num_nextn_predict_layers": null})";
constexpr std::string_view kDeepSeekV32Fields =
    R"({"vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432,
        "num_hidden_layers": 61, "num_attention_heads": 128, "max_position_embeddings": 4096,
        "attention_bias": false, "attention_dropout": 0, "tie_word_embeddings": false,
        "first_k_dense_replace": 3, "moe_layer_freq": 1, "kv_lora_rank": 512, "q_lora_rank":
        1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "num_key_value_heads": null, "rotary_pct": null, "head_dim": null, "n_routed_experts":
        256, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
        "n_group": null, "topk_group": null, "topk_method": null,
        "num_nextn_predict_layers": null, "index_topk": 2048, "index_n_heads": 64,
        "index_head_dim": 128})";
constexpr std::string_view kGlmMoeDsaFields =
    R"({"vocab_size": 154880, "hidden_size": 6144, "intermediate_size": 12288,
        "num_hidden_layers": 78, "num_attention_heads": 64, "max_position_embeddings": 202752,
        "attention_bias": false, "attention_dropout": 0, "tie_word_embeddings": false,
        "first_k_dense_replace": 3, "moe_layer_freq": 1, "mlp_layer_types": null,
        "kv_lora_rank": 512, "q_lora_rank": 2048, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64,
        "v_head_dim": 256, "num_key_value_heads": null, "rotary_pct": null, "head_dim": null,
        "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048, "n_group": null, "topk_group": null, "topk_method": null,
        "num_nextn_predict_layers": null, "index_topk": 2048, "index_n_heads": 32,
        "index_head_dim": 128})";
constexpr std::string_view kQwen25VlFields =
    R"({"vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568,
        "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
        "head_dim": null, "max_position_embeddings": 32768, "tie_word_embeddings": false,
        "use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 28,
        "layer_types": null, "attention_dropout": 0})";

constexpr std::string_view kQwen2VlFields =
    R"({"vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568,
        "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
        "head_dim": null, "max_position_embeddings": 32768, "tie_word_embeddings": false,
        "use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 80,
        "layer_types": null, "attention_dropout": 0})";
constexpr std::string_view kQwen3NextTraits =
    R"({"norm": "rmsnorm", "gated_mlp": true, "bias": false, "positions": "rotary", "qk_norm":
        true, "attention_gate": true})";

constexpr std::string_view kBertTraits =
    R"({"norm_position": "post", "embedding_norm": true, "bidirectional": true})";
constexpr std::string_view kRobertaFields =
    R"({"vocab_size": 50265, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads":
        12, "intermediate_size": 3072, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob":
        0.1, "max_position_embeddings": 512, "type_vocab_size": 2, "tie_word_embeddings": true})";
constexpr std::string_view kBailingFields =
    R"({"vocab_size": 30592, "hidden_size": 1024, "intermediate_size": null,
        "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": null,
        "head_dim": null, "max_position_embeddings": 16384, "attention_dropout": 0,
        "embedding_dropout": 0, "output_dropout": 0, "bias": false, "qkv_bias": false,
        "use_qk_norm": false, "rotary_pct": null, "tie_word_embeddings": false,
        "first_k_dense_replace": 0, "moe_layer_freq": 1, "n_routed_experts": null,
        "num_experts_per_tok": null, "n_shared_experts": null, "moe_intermediate_size": null,
        "shared_expert_intermediate_size": null, "use_routing_bias": false, "n_group": null,
        "topk_group": null, "topk_method": null, "num_nextn_predict_layers": null})";
constexpr std::string_view kGlmTraits =
    R"({"norm": "rmsnorm", "gated_mlp": true, "mlp_bias": false, "positions": "rotary",
        "projection_bias": false})";
constexpr std::string_view kGlmFields =
    R"({"vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 13696,
        "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim":
        128, "max_position_embeddings": 131072, "attention_bias": true, "attention_dropout": 0,
        "tie_word_embeddings": false, "rotary_pct": 0.5})";

constexpr std::string_view kT5Traits =
    R"({"norm": "rmsnorm", "bias": false, "positions": "relative", "attention": "materialised"})";

constexpr ConfigType kTypes[] = {
    {"apertus",
     R"({"norm": "rmsnorm", "gated_mlp": false, "bias": false, "positions": "rotary", "qk_norm":
         true})",
     R"({"vocab_size": 131072, "hidden_size": 4096, "intermediate_size": 14336,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": null,
         "head_dim": null, "max_position_embeddings": 65536, "attention_bias": false,
         "attention_dropout": 0, "hidden_dropout": 0, "mlp_bias": false, "tie_word_embeddings":
         false, "use_qk_norm": true})"},
    {"bailing_moe", kLlamaTraits, kBailingFields},
    {"bailing_moe_v2", kLlamaTraits, kBailingFields},
    {"bert", kBertTraits,
     R"({"vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12,
         "num_attention_heads": 12, "intermediate_size": 3072, "hidden_dropout_prob": 0.1,
         "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 512, "type_vocab_size":
         2, "tie_word_embeddings": true})"},
    {"bloom", R"({"bias": true, "positions": "none", "embedding_norm": true})",
     R"({"vocab_size": 250880, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads":
         8, "intermediate_size": null, "attention_dropout": 0, "hidden_dropout": 0,
         "tie_word_embeddings": true})"},
    {"camembert", kBertTraits, kRobertaFields},
    {"cohere",
     R"({"norm_bias": false, "gated_mlp": true, "bias": false, "positions": "rotary",
         "parallel_residual": true, "shared_norm": true})",
     R"({"vocab_size": 256000, "hidden_size": 8192, "intermediate_size": 22528,
         "num_hidden_layers": 40, "num_attention_heads": 64, "num_key_value_heads": null,
         "max_position_embeddings": 8192, "attention_bias": false, "attention_dropout": 0,
         "tie_word_embeddings": true, "use_qk_norm": false})"},
    {"cohere2",
     R"({"norm_bias": false, "gated_mlp": true, "bias": false, "positions": "rotary",
         "parallel_residual": true, "shared_norm": true})",
     R"({"vocab_size": 256000, "hidden_size": 8192, "intermediate_size": 22528,
         "num_hidden_layers": 40, "num_attention_heads": 64, "num_key_value_heads": null,
         "head_dim": null, "max_position_embeddings": 8192, "attention_bias": false,
         "attention_dropout": 0, "tie_word_embeddings": true, "rotary_pct": null,
         "sliding_window": 4096, "sliding_window_pattern": 4, "layer_types": null,
         "rotary_in_windows": true})"},
    {"dbrx", R"({"norm_bias": false, "gated_mlp": true, "bias": false, "positions": "rotary"})",
     R"({"vocab_size": 32000, "hidden_size": 2048, "intermediate_size": 3584,
         "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 1,
         "max_position_embeddings": 2048, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0,
         "tie_word_embeddings": false, "n_routed_experts": 4, "num_experts_per_tok": 1})"},
    {"deepseek_v2", kLlamaTraits,
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
         "num_hidden_layers": 32, "num_attention_heads": 32, "max_position_embeddings": 2048,
         "attention_bias": false, "attention_dropout": 0, "tie_word_embeddings": false,
         "mlp_bias": false, "head_dim": null, "first_k_dense_replace": 0, "moe_layer_freq": 1,
         "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim":
         64, "v_head_dim": 128, "num_key_value_heads": null, "rotary_pct": null,
         "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": null,
         "n_group": null, "topk_group": null, "topk_method": null,
         "moe_intermediate_size": 1407})"},
    {"deepseek_v3", kDeepSeekV3Traits, kDeepSeekV3Fields},
    {"deepseek_v32", kDeepSeekV3Traits, kDeepSeekV32Fields},
    {"distilbert", kBertTraits,
     R"({"vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 6, "num_attention_heads":
         12, "intermediate_size": 3072, "hidden_dropout": 0.1, "attention_dropout": 0.1,
         "max_position_embeddings": 512, "type_vocab_size": 0, "tie_word_embeddings": true})"},
    {"dots1",
     R"({"norm": "rmsnorm", "gated_mlp": true, "bias": false, "positions": "rotary", "qk_norm":
         true, "router_bias": true})",
     R"({"vocab_size": 152064, "hidden_size": 4608, "intermediate_size": 10944,
         "num_hidden_layers": 62, "num_attention_heads": 32, "num_key_value_heads": 32,
         "head_dim": null, "max_position_embeddings": 2048, "attention_bias": false,
         "attention_dropout": 0, "tie_word_embeddings": false, "use_sliding_window": false,
         "sliding_window": 4096, "max_window_layers": 62, "layer_types": null,
         "first_k_dense_replace": 0, "moe_layer_freq": 1, "n_routed_experts": null,
         "n_shared_experts": null, "num_experts_per_tok": null, "moe_intermediate_size": 1408,
         "n_group": null, "topk_group": null, "topk_method": null})"},
    {"ernie4_5", kLlamaTraits,
     R"({"vocab_size": 103424, "hidden_size": 1024, "intermediate_size": 3072,
         "num_hidden_layers": 18, "num_attention_heads": 16, "num_key_value_heads": 2,
         "head_dim": 128, "max_position_embeddings": 131072, "bias": false,
         "tie_word_embeddings": true})"},
    {"ernie4_5_moe", kDeepSeekV3Traits,
     R"({"vocab_size": 103424, "hidden_size": 2560, "intermediate_size": 12288,
         "num_hidden_layers": 28, "num_attention_heads": 20, "num_key_value_heads": 4,
         "head_dim": null, "max_position_embeddings": 131072, "bias": false,
         "tie_word_embeddings": true, "moe_intermediate_size": 1536, "num_experts_per_tok": 6,
         "n_routed_experts": 64, "n_shared_experts": 2, "moe_layer_start_index": 1,
         "moe_layer_end_index": -1, "moe_layer_interval": 1})"},
    {"exaone4",
     R"({"norm": "rmsnorm", "gated_mlp": true, "bias": false, "positions": "rotary",
         "norm_position": "branch", "qk_norm": true})",
     R"({"vocab_size": 102400, "hidden_size": 4096, "intermediate_size": 16384,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
         "head_dim": null, "max_position_embeddings": 2048, "attention_dropout": 0,
         "tie_word_embeddings": false, "sliding_window": 4096, "sliding_window_pattern": 4,
         "layer_types": null, "rotary_in_windows": true})"},
    {"falcon", R"({"positions": "rotary"})",
     R"({"vocab_size": 65024, "hidden_size": 4544, "num_hidden_layers": 32,
         "num_attention_heads": 71, "num_key_value_heads": null, "intermediate_size": null,
         "hidden_dropout": 0, "attention_dropout": 0, "alibi": false,
         "new_decoder_architecture": false, "multi_query": true, "use_parallel_residual": true,
         "bias": false, "max_position_embeddings": 2048, "tie_word_embeddings": true})"},
    {"gemma", kLlamaTraits,
     R"({"vocab_size": 256000, "hidden_size": 3072, "intermediate_size": 24576,
         "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 16,
         "head_dim": 256, "max_position_embeddings": 8192, "attention_bias": false,
         "attention_dropout": 0, "tie_word_embeddings": true})"},
    {"gemma2", kGemma2Traits,
     R"({"vocab_size": 256000, "hidden_size": 2304, "intermediate_size": 9216,
         "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,
         "head_dim": 256, "max_position_embeddings": 8192, "attention_bias": false,
         "attention_dropout": 0, "tie_word_embeddings": true, "sliding_window": 4096,
         "sliding_window_pattern": 2, "layer_types": null})"},
    {"gemma3_text", kGemma3Traits,
     R"({"vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216,
         "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,
         "head_dim": 256, "max_position_embeddings": 131072, "attention_bias": false,
         "attention_dropout": 0, "tie_word_embeddings": true, "sliding_window": 4096,
         "sliding_window_pattern": 6, "layer_types": null})"},
    {"glm", kGlmTraits, kGlmFields},
    {"glm4",
     R"({"norm": "rmsnorm", "gated_mlp": true, "mlp_bias": false, "positions": "rotary",
         "projection_bias": false, "norm_position": "both"})",
     kGlmFields},
    {"glm4_moe",
     R"({"norm": "rmsnorm", "gated_mlp": true, "mlp_bias": false, "positions": "rotary",
         "projection_bias": false, "router_bias": true})",
     R"({"vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 10944,
         "num_hidden_layers": 46, "num_attention_heads": 96, "num_key_value_heads": 8,
         "head_dim": 128, "max_position_embeddings": 131072, "attention_bias": false,
         "attention_dropout": 0, "tie_word_embeddings": false, "rotary_pct": 0.5, "use_qk_norm":
         false, "moe_intermediate_size": 1408, "num_experts_per_tok": 8, "n_shared_experts": 1,
         "n_routed_experts": 128, "n_group": null, "topk_group": null,
         "first_k_dense_replace": 1, "num_nextn_predict_layers": null})"},
    {"glm4_moe_lite", kDeepSeekV3Traits,
     R"({"vocab_size": 154880, "hidden_size": 2048, "intermediate_size": 10240,
         "num_hidden_layers": 47, "num_attention_heads": 20, "num_key_value_heads": null,
         "rotary_pct": null, "head_dim": null, "max_position_embeddings": 202752,
         "attention_bias": false, "attention_dropout": 0, "tie_word_embeddings": false,
         "first_k_dense_replace": 1, "moe_layer_freq": 1, "mlp_layer_types": null,
         "kv_lora_rank": 512, "q_lora_rank": 768, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64,
         "v_head_dim": 256, "n_routed_experts": 64, "n_shared_experts": 1, "num_experts_per_tok":
         4, "moe_intermediate_size": 1536, "n_group": null, "topk_group": null, "topk_method":
         null, "num_nextn_predict_layers": null})"},
    {"glm_moe_dsa", kDeepSeekV3Traits, kGlmMoeDsaFields},
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
    {"gpt_oss",
     R"({"norm": "rmsnorm", "gated_mlp": true, "bias": false, "positions": "rotary",
         "mlp_bias": true, "router_bias": true, "attention_sinks": true, "clamped_mlp": true,
         "scaled_rotation": true})",
     R"({"vocab_size": 201088, "hidden_size": 2880, "intermediate_size": 2880,
         "num_hidden_layers": 36, "num_attention_heads": 64, "num_key_value_heads": 8,
         "head_dim": 64, "max_position_embeddings": 131072, "attention_bias": true,
         "attention_dropout": 0, "tie_word_embeddings": false, "sliding_window": 128,
         "sliding_window_pattern": 2, "layer_types": null, "num_experts_per_tok": 4,
         "n_routed_experts": 128})"},
    {"gptj",
     R"({"qkv_bias": false, "projection_bias": false, "mlp_bias": true, "positions": "rotary",
         "parallel_residual": true, "shared_norm": true, "readout_bias": true})",
     R"({"vocab_size": 50400, "max_position_embeddings": 2048, "hidden_size": 4096,
         "num_hidden_layers": 28, "num_attention_heads": 16, "intermediate_size": null,
         "rotary_dim": 64, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0,
         "tie_word_embeddings": false})"},
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
    {"granitemoehybrid",
     R"({"norm": "rmsnorm", "gated_mlp": true, "bias": false, "positions": "none"})",
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": null,
         "head_dim": null, "max_position_embeddings": 2048, "attention_bias": false,
         "attention_dropout": 0, "tie_word_embeddings": false, "mlp_bias": false,
         "position_embedding_type": null, "layer_types": null, "n_routed_experts": 8,
         "num_experts_per_tok": 2, "n_shared_experts": 1, "shared_expert_intermediate_size": 1024,
         "mamba_num_heads": 128, "mamba_head_dim": "auto", "n_groups": 1, "mamba_d_state": 256,
         "mamba_d_conv": 4, "mamba_expand": 2, "chunk_size": 256, "mamba_conv_bias": true,
         "mamba_proj_bias": false})"},
    {"hunyuan_v1_dense", kQwen3Traits,
     R"({"vocab_size": 290943, "hidden_size": 4096, "intermediate_size": 11008,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": null,
         "head_dim": null, "max_position_embeddings": 2048, "attention_bias": false,
         "attention_dropout": 0, "tie_word_embeddings": false, "mlp_bias": false, "use_qk_norm":
         true})"},
    {"hunyuan_v1_moe", kQwen3Traits,
     R"({"vocab_size": 290943, "hidden_size": 4096, "intermediate_size": 11008,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": null,
         "head_dim": null, "max_position_embeddings": 2048, "attention_bias": false,
         "attention_dropout": 0, "tie_word_embeddings": false, "mlp_bias": false, "use_qk_norm":
         true, "sliding_window": null, "n_routed_experts": 1, "num_experts_per_tok": 1,
         "n_shared_experts": 1, "moe_intermediate_size": null})"},
    {"jamba", R"({"norm": "rmsnorm", "gated_mlp": true, "bias": false, "positions": "none"})",
     R"({"vocab_size": 65536, "hidden_size": 4096, "intermediate_size": 14336,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
         "max_position_embeddings": 262144, "attention_dropout": 0, "tie_word_embeddings":
         false, "sliding_window": null, "num_experts_per_tok": 2, "n_routed_experts": 16,
         "expert_layer_period": 2, "expert_layer_offset": 1, "attn_layer_period": 8,
         "attn_layer_offset": 4, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2,
         "mamba_dt_rank": "auto", "mamba_conv_bias": true, "mamba_proj_bias": false})"},
    {"kimi_k2", kDeepSeekV3Traits, kDeepSeekV3Fields},
    {"llama", kLlamaTraits,
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": null,
         "max_position_embeddings": 2048, "tie_word_embeddings": false, "attention_bias": false,
         "attention_dropout": 0, "mlp_bias": false, "head_dim": null})"},
    {"llama4_text",
     R"({"norm": "rmsnorm", "gated_mlp": true, "bias": false, "positions": "rotary", "qk_norm":
         false})",
     R"({"vocab_size": 202048, "hidden_size": 5120, "intermediate_size": 8192,
         "num_hidden_layers": 48, "num_attention_heads": 40, "intermediate_size_mlp": 16384,
         "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 131072,
         "attention_bias": false, "attention_dropout": 0, "tie_word_embeddings": false,
         "attention_chunk_size": 8192, "no_rope_layers": null, "no_rope_layer_interval": 4,
         "layer_types": null, "interleave_moe_layer_step": 1, "moe_layers": null,
         "n_routed_experts": 16, "num_experts_per_tok": 1, "use_qk_norm": true})"},
    {"mimo",
     R"({"norm": "rmsnorm", "gated_mlp": true, "bias": false, "positions": "rotary", "qkv_bias":
         true, "projection_bias": false})",
     R"({"vocab_size": 151680, "hidden_size": 4096, "intermediate_size": 11008,
         "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
         "head_dim": 128, "max_position_embeddings": 32768, "attention_bias": true,
         "tie_word_embeddings": false, "use_sliding_window": false, "sliding_window": 4096,
         "max_window_layers": 28, "layer_types": null, "attention_dropout": 0,
         "num_nextn_predict_layers": null})"},
    {"minimax_m2",
     R"({"norm": "rmsnorm", "gated_mlp": true, "bias": false, "positions": "rotary", "qk_norm":
         "whole", "router_bias": true})",
     R"({"vocab_size": 200064, "hidden_size": 3072, "intermediate_size": 1536,
         "num_hidden_layers": 62, "num_attention_heads": 48, "num_key_value_heads": 8,
         "head_dim": 128, "max_position_embeddings": 196608, "tie_word_embeddings": false,
         "attention_dropout": 0, "rotary_dim": 64, "use_qk_norm": true, "use_routing_bias":
         true, "n_routed_experts": 256, "num_experts_per_tok": 8, "use_mtp": false,
         "num_mtp_modules": null, "mtp_transformer_layers": null})"},
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
    {"mpt", R"({"norm_bias": false, "gated_mlp": false, "bias": false, "positions": "learned"})",
     R"({"vocab_size": 50368, "hidden_size": 2048, "intermediate_size": null,
         "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": null,
         "max_position_embeddings": 2048, "alibi": true, "expansion_ratio": 4, "no_bias": true,
         "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0, "tie_word_embeddings": true})"},
    {"mt5", kT5Traits,
     R"({"vocab_size": 250112, "hidden_size": 512, "head_dim": 64, "intermediate_size": 1024,
         "num_hidden_layers": 8, "num_decoder_layers": null, "num_attention_heads": 6,
         "relative_attention_num_buckets": 32, "hidden_dropout": 0.1, "feed_forward_proj":
         "gated-gelu", "is_gated_act": null, "is_encoder_decoder": true, "tie_word_embeddings":
         false, "max_position_embeddings": 512})"},
    {"nemotron", R"({"norm": "layernorm", "gated_mlp": false, "positions": "rotary"})",
     R"({"vocab_size": 256000, "hidden_size": 6144, "intermediate_size": 24576,
         "num_hidden_layers": 32, "num_attention_heads": 48, "num_key_value_heads": null,
         "head_dim": null, "max_position_embeddings": 4096, "attention_bias": false,
         "attention_dropout": 0, "tie_word_embeddings": false, "mlp_bias": false, "rotary_pct":
         0.5})"},
    {"nemotron-nas", kLlamaTraits,
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": null,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": null,
         "max_position_embeddings": 2048, "tie_word_embeddings": false, "attention_bias": false,
         "attention_dropout": 0, "mlp_bias": false, "block_configs": null})"},
    {"nemotron_h",
     R"({"norm": "rmsnorm", "gated_mlp": false, "bias": false, "positions": "none",
         "router_bias": true})",
     R"({"vocab_size": 131072, "hidden_size": 4096, "intermediate_size": 21504,
         "num_hidden_layers": 52, "num_attention_heads": 32, "num_key_value_heads": 8,
         "head_dim": 128, "max_position_embeddings": 4096, "attention_bias": false,
         "attention_dropout": 0, "tie_word_embeddings": false, "hidden_dropout": 0, "mlp_bias":
         false, "bias": false, "rotary_pct": null, "sliding_window": null,
         "layer_types": null,
         "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
         "mamba_num_heads": 128, "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8,
         "conv_kernel": 4, "chunk_size": 128, "use_conv_bias": true, "mamba_proj_bias": false,
         "n_routed_experts": null, "num_experts_per_tok": null, "n_shared_experts": null,
         "n_group": null, "topk_group": null,
         "moe_intermediate_size": null, "shared_expert_intermediate_size": null,
         "moe_latent_size": null})"},
    {"olmo2", kOlmo2Traits,
     R"({"vocab_size": 50304, "hidden_size": 4096, "intermediate_size": 11008,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": null,
         "max_position_embeddings": 2048, "attention_bias": false, "attention_dropout": 0,
         "tie_word_embeddings": false})"},
    {"olmo3", kOlmo2Traits,
     R"({"vocab_size": 50304, "hidden_size": 4096, "intermediate_size": 11008,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": null,
         "max_position_embeddings": 2048, "attention_bias": false, "attention_dropout": 0,
         "tie_word_embeddings": false, "sliding_window": 4096, "sliding_window_pattern": 4,
         "layer_types": null})"},
    {"olmoe",
     R"({"norm": "rmsnorm", "gated_mlp": true, "bias": false, "positions": "rotary", "qk_norm":
         "whole"})",
     R"({"vocab_size": 50304, "hidden_size": 2048, "intermediate_size": 2048,
         "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": null,
         "max_position_embeddings": 4096, "attention_bias": false, "attention_dropout": 0,
         "tie_word_embeddings": false, "num_experts_per_tok": 8, "n_routed_experts": 64})"},
    {"openelm", R"({"norm": "rmsnorm", "gated_mlp": true, "bias": false, "positions": "rotary"})",
     R"({"vocab_size": 32000, "hidden_size": 2048, "num_hidden_layers": 12,
         "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 128,
         "max_position_embeddings": 2048, "tie_word_embeddings": true, "use_qk_norm": false,
         "ffn_multipliers": null, "ffn_dim_divisor": 256, "ffn_with_glu": true})"},
    {"opt", R"({"bias": true})",
     R"({"vocab_size": 50272, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers":
         12, "num_attention_heads": 12, "max_position_embeddings": 2048, "hidden_dropout": 0.1,
         "attention_dropout": 0, "tie_word_embeddings": true, "bias": true,
         "do_layer_norm_before": true, "word_embed_proj_dim": null})"},
    {"phi",
     R"({"bias": true, "positions": "rotary", "parallel_residual": true, "shared_norm": true,
         "readout_bias": true})",
     R"({"vocab_size": 51200, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers":
         24, "num_attention_heads": 32, "num_key_value_heads": null, "max_position_embeddings":
         2048, "attention_dropout": 0, "resid_pdrop": 0, "embd_pdrop": 0, "tie_word_embeddings":
         false, "rotary_pct": 0.5, "use_qk_norm": false})"},
    {"phi3", kLlamaTraits,
     R"({"vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": null,
         "max_position_embeddings": 4096, "tie_word_embeddings": false, "attention_dropout": 0,
         "embd_pdrop": 0, "resid_pdrop": 0, "sliding_window": null, "rotary_pct": null})"},
    {"phimoe", R"({"norm": "layernorm", "gated_mlp": true, "positions": "rotary"})",
     R"({"vocab_size": 32064, "hidden_size": 4096, "intermediate_size": 6400,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
         "max_position_embeddings": 131072, "attention_bias": false, "attention_dropout": 0,
         "hidden_dropout": 0, "tie_word_embeddings": false, "sliding_window": null,
         "lm_head_bias": false, "bias": false, "mlp_bias": false, "n_routed_experts": 16,
         "num_experts_per_tok": 2})"},
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
    {"qwen2_vl", kQwen2Traits, kQwen2VlFields},
    {"qwen2_vl_text", kQwen2Traits, kQwen2VlFields},
    {"qwen3", kQwen3Traits,
     R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
         "head_dim": 128, "max_position_embeddings": 32768, "tie_word_embeddings": false,
         "attention_bias": false, "use_sliding_window": false, "sliding_window": 4096,
         "max_window_layers": 28, "layer_types": null, "attention_dropout": 0})"},
    {"qwen3_5_moe_text", kQwen3NextTraits,
     R"({"vocab_size": 248320, "hidden_size": 2048, "num_hidden_layers": 40,
         "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256,
         "max_position_embeddings": 32768, "attention_bias": false, "attention_dropout": 0,
         "tie_word_embeddings": false, "rotary_pct": 0.25, "layer_types": null,
         "full_attention_interval": 4, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
         "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
         "attention_gate": true, "mlp_only_layers": null, "moe_intermediate_size": 512,
         "shared_expert_intermediate_size": 512, "num_experts_per_tok": 8, "n_routed_experts":
         256, "num_nextn_predict_layers": null})"},
    {"qwen3_5_text", kQwen3NextTraits,
     R"({"vocab_size": 248320, "hidden_size": 4096, "intermediate_size": 12288,
         "num_hidden_layers": 32, "num_attention_heads": 16, "num_key_value_heads": 4,
         "head_dim": 256, "max_position_embeddings": 32768, "attention_bias": false,
         "attention_dropout": 0, "tie_word_embeddings": false, "rotary_pct": 0.25, "layer_types":
         null, "full_attention_interval": 4, "linear_conv_kernel_dim": 4, "linear_key_head_dim":
         128, "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads":
         32, "attention_gate": true, "mlp_only_layers": null, "num_nextn_predict_layers": null})"},
    {"qwen3_moe", kQwen3Traits,
     R"({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144,
         "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads": 4,
         "head_dim": null, "max_position_embeddings": 32768, "attention_bias": false,
         "attention_dropout": 0, "tie_word_embeddings": false, "use_sliding_window": false,
         "sliding_window": 4096, "max_window_layers": 28, "layer_types": null, "use_qk_norm":
         true, "decoder_sparse_step": 1, "mlp_only_layers": null, "moe_intermediate_size": 768,
         "num_experts_per_tok": 8, "n_routed_experts": 128})"},
    {"qwen3_next", kQwen3NextTraits,
     R"({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632,
         "num_hidden_layers": 48, "num_attention_heads": 16, "num_key_value_heads": 2,
         "head_dim": 256, "max_position_embeddings": 32768, "attention_bias": false,
         "attention_dropout": 0, "tie_word_embeddings": false, "use_sliding_window": false,
         "rotary_pct": 0.25, "layer_types": null, "full_attention_interval": 4,
         "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
         "linear_num_key_heads": 16, "linear_num_value_heads": 32, "decoder_sparse_step": 1,
         "mlp_only_layers": null, "moe_intermediate_size": 512,
         "shared_expert_intermediate_size": 512, "num_experts_per_tok": 10, "n_routed_experts":
         512})"},
    {"qwen3_vl_moe_text", kQwen3Traits,
     R"({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632,
         "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16,
         "head_dim": null, "max_position_embeddings": 128000, "attention_bias": false,
         "attention_dropout": 0, "tie_word_embeddings": false, "decoder_sparse_step": 1,
         "mlp_only_layers": null, "moe_intermediate_size": 1408, "num_experts_per_tok": 4,
         "n_routed_experts": 60})"},
    {"qwen3_vl_text", kQwen3Traits,
     R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
         "head_dim": 128, "max_position_embeddings": 128000, "attention_bias": false,
         "attention_dropout": 0, "tie_word_embeddings": false})"},
    {"roberta", kBertTraits, kRobertaFields},
    {"seed_oss", kLlamaTraits,
     R"({"vocab_size": 155136, "hidden_size": 4096, "intermediate_size": 27648,
         "num_hidden_layers": 64, "num_attention_heads": 80, "num_key_value_heads": 8,
         "head_dim": 128, "max_position_embeddings": 524288, "attention_bias": true,
         "attention_out_bias": false, "attention_dropout": 0.1, "residual_dropout": 0.1,
         "mlp_bias": false, "tie_word_embeddings": false})"},
    {"smollm3", kLlamaTraits,
     R"({"vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 11008,
         "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 4,
         "max_position_embeddings": 32768, "use_sliding_window": false, "sliding_window": null,
         "max_window_layers": 0, "no_rope_layers": null, "no_rope_layer_interval": 4,
         "layer_types": null, "attention_bias": false, "attention_dropout": 0, "mlp_bias": false,
         "tie_word_embeddings": true})"},
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
    {"t5", kT5Traits,
     R"({"vocab_size": 32128, "hidden_size": 512, "head_dim": 64, "intermediate_size": 2048,
         "num_hidden_layers": 6, "num_decoder_layers": null, "num_attention_heads": 8,
         "relative_attention_num_buckets": 32, "hidden_dropout": 0.1, "feed_forward_proj":
         "relu", "is_gated_act": null, "is_encoder_decoder": true, "tie_word_embeddings": true,
         "max_position_embeddings": 512})"},
    {"vit", R"({"bias": true})",
     R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
         "intermediate_size": 3072, "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0,
         "image_size": 224, "patch_size": 16, "num_channels": 3, "qkv_bias": true})"},
    {"xlm-roberta", kBertTraits, kRobertaFields},
};

constexpr const char* kBothWays =
    "attention between contents and places, both ways (relative_attention)";
constexpr const char* kLightning = "lightning attention (attn_type_list, layer_group_size)";
constexpr const char* kShortConvolutions =
    "short convolutions in the place of attention (conv_L_cache)";
constexpr const char* kOtherHeads =
    "layers with windows whose heads have other sizes than those of the rest (attention_other_"
    "setting, swa_head_dim)";
constexpr const char* kSharedKeys =
    "layers that see all whose keys are their values, with heads of another size "
    "(attention_k_eq_v, "
    "global_head_dim)";

constexpr UnmodelledType kUnmodelledTypes[] = {
    {"albert", "layers that share their weights (num_hidden_groups)"},
    {"bailing_hybrid", kLightning},
    {"bailing_moe_linear", kLightning},
    {"deberta", kBothWays},
    {"deberta-v2", kBothWays},
    {"deepseek_v4", "compressed attention and several residual streams (compress_ratios, hc_mult)"},
    {"electra", "a second network that makes what it learns from (embedding_size, generator)"},
    {"falcon_h1", "attention and Mamba 2 side by side in each layer (mamba_d_ssm)"},
    {"gemma3n_text",
     "four streams that a layer predicts and corrects (AltUp: altup_num_inputs), a table of "
     "embeddings for each layer (hidden_size_per_layer_input), low-rank residuals (LAuReL: "
     "laurel_rank), keys that the last layers take from earlier ones (num_kv_shared_layers) and "
     "MLPs that keep a twentieth of their outputs (activation_sparsity_pattern)"},
    {"gemma4_text", kSharedKeys},
    {"kimi_linear", "Kimi Delta Attention (linear_attn_config)"},
    {"lfm2", kShortConvolutions},
    {"lfm2_moe", kShortConvolutions},
    {"longcat_flash",
     "two attentions and two MLPs beside the experts of each layer, and experts that do nothing "
     "(zero_expert_num)"},
    {"mimo_v2", kOtherHeads},
    {"mimo_v2_flash", kOtherHeads},
    {"minimax", kLightning},
    {"minimax_m3", "attention to blocks that are chosen (sparse_attention_config)"},
    {"minimax_text_01", kLightning},
    {"rwkv", "time mixing in the place of attention"},
    {"step3p5", kOtherHeads},
    {"step3p7", kOtherHeads},
    {"whisper", "an encoder of sound"},
    {"zamba2", "blocks of attention that layers share (num_mem_blocks)"}};

}  // namespace

std::span<const UnmodelledType> unmodelled_types() { return kUnmodelledTypes; }

std::span<const ConfigType> config_types() { return kTypes; }

}  // namespace interlock
