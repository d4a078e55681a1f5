// Config types: what a config.json of Hugging Face leaves out, and what it never says.
// SPDX-License-Identifier: Apache-2.0
//
// A configuration may omit every field that equals the default of its class; and what is the same
// in all models of a type stands in the type's code alone. Both are written here for each
// model_type, as JSON: `fields` are the class's defaults under the class's names, `traits` are keys
// of our own transformer. A field that is not listed has no meaning for us, or none at all.
// Source: the configuration and modelling sources of transformers (github.com/huggingface/
// transformers, src/transformers/models), read in November 2026; moe_layer_freq is of the code that
// DeepSeek published with its weights.
#pragma once

#include <span>
#include <string_view>

namespace interlock {

struct ConfigType {
  std::string_view name;  // model_type
  std::string_view traits;
  std::string_view fields;
};

/// All that can be read, sorted by name.
std::span<const ConfigType> config_types();

}  // namespace interlock
