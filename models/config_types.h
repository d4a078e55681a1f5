// Config types: what a config.json of Hugging Face leaves out, and what it never says.
// SPDX-License-Identifier: Apache-2.0
//
// A configuration may omit every field that equals the default of its class; and what is the same
// in all models of a type stands in the type's code alone. Both are written here for each
// model_type, as JSON: `fields` are the fields that its class knows, with their defaults (null: it
// has none, or the class derives it from others), `traits` are keys of our own transformer, which
// no field changes.
// Source: the configuration and modelling sources of transformers (github.com/huggingface/
// transformers, src/transformers/models), read in November 2026: bert, deepseek, gpt2, gpt_neox,
// llama, mistral, mixtral, qwen2, qwen3, their mixtures and vit; jamba, falcon and cohere
// at commits 008f5c8c, 05585536 and 008e5743; the fields of apertus, cohere2, dots1, exaone4,
// gemma, glm4, glm4_moe_lite, olmoe, seed_oss and smollm3 at 008e5743, of ernie4_5_moe at 001f85b3,
// of granitemoehybrid at 008f5c8c, of hunyuan_v1_dense and _moe at 05cd1ec1 and 008cd60e. The
// others, and the traits of these, are recalled; the published counts of tests/models/configs hold
// most. moe_layer_freq is of the code that DeepSeek published with its weights.
#pragma once

#include <span>
#include <string_view>

namespace interlock {

/// A class of models. Example: "bert" has the traits {"norm_position": "post", ...} and the fields
/// {"hidden_size": 768, "num_hidden_layers": 12, ...}: a bert without "hidden_size" has 768.
struct ConfigType {
  std::string_view name;  // model_type
  std::string_view traits;
  std::string_view fields;
};

/// Returns all classes that are known, sorted by name.
std::span<const ConfigType> config_types();

}  // namespace interlock
