// Unmodelled types: what is missing for each.
// SPDX-License-Identifier: Apache-2.0
#include "models/unmodelled_types.h"

namespace interlock {
namespace {

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

}  // namespace interlock
