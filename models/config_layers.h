// Config layers: which layer of a configuration has which form, as a pattern.
// SPDX-License-Identifier: Apache-2.0
//
// Classes say it by lists (layer_types), letters (hybrid_override_pattern) or rules (every 4th
// layer sees all). Each layer becomes an item of "layer_pattern"; the shortest run of items that
// gives all layers in turn is kept. Example: the 62 layers of Gemma 3, five with a window and one
// without in turn, are [{"repeat": 5, "sliding_window": 1024}, {}].
#pragma once

#include <optional>

#include "models/config_fields.h"

namespace interlock {

/// A layer of a hybrid, by its letter: a mixer, or a feed-forward.
struct HybridForm {
  const char* attention = nullptr;  // nothing: the model's
  const char* ffn = "none";
};
/// Returns the form of M (Mamba 2), * (attention), - (MLP) or E (experts); nothing for another.
std::optional<HybridForm> hybrid_form(char letter);

/// Returns whether attention of the class sees compressed entries (DeepSeek-V4).
bool sees_entries(const ConfigFields& fields);
/// Appends to `form` what attention of layer `i` of such a class sees: its window, and entries.
void append_entries(const ConfigFields& fields, int i, std::vector<JsonMember>& form);

/// Puts into `model` what its layers are: "layer_pattern" where they differ, else plain keys.
void put_layers(const ConfigFields& fields, JsonValue& model);

}  // namespace interlock
