// Megatron model: the model that arguments of Megatron-LM describe.
// SPDX-License-Identifier: Apache-2.0
//
// Keys that are left out have the defaults that megatron_scenario.h names: MLPs 4 times as
// wide, or 8/3 if gated, in multiples of 64; LayerNorm with biases, learned positions, tied
// embeddings, dropout of 0.1.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "reports/imports/settings.h"

namespace interlock {

/// Returns a model of kind "transformer". `vocab_size`: of the tokenizer, where the arguments do
/// not say it. Adds a diagnostic for what no model of ours is.
nlohmann::ordered_json megatron_model(Settings& arguments, const std::string& name,
                                      std::optional<int> vocab_size);

}  // namespace interlock
