// Bridge settings: configurations of NeMo, Megatron-Bridge and Primus under Megatron-LM's names.
// SPDX-License-Identifier: Apache-2.0
//
// All three run Megatron-Core. Their YAML says the same things in sections, with underscores, and
// some the other way round. Example: "model: {add_bias_linear: false, num_moe_experts: 8}" becomes
// --disable-bias-linear --num-experts 8; messages call them model.add_bias_linear and so on.
// Sources: NVIDIA/NeMo @ 8cfedd7, examples/nlp/language_modeling/conf/megatron_gpt_config.yaml;
// NVIDIA-NeMo/Megatron-Bridge @ 067f987, scripts/translate_mlm_to_bridge.py; AMD-AGI/Primus @
// fd1eeab, primus/configs/models/megatron.
#pragma once

#include <string>

#include "reports/imports/settings.h"

namespace interlock {

/// Reads the YAML at `path`. Throws: Error if it cannot be read or has none of their sections.
Settings read_bridge_settings(const std::string& path);

/// Reads an experiment of Primus, whose "model" is a preset in primus/configs/models/megatron of a
/// folder above `path`. `needs_model`: the preset was not found, so that an option has to say it.
/// Throws: Error if the file has no module that trains with Megatron.
struct PrimusSettings {
  Settings settings;
  bool needs_model = false;
};
PrimusSettings read_primus_settings(const std::string& path);

}  // namespace interlock
