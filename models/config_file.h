// Config file: a model as a config.json of Hugging Face describes it, in our own words.
// SPDX-License-Identifier: Apache-2.0
//
// The result is an object of {"kind": "transformer"} that stands where the configuration does, so
// that what is wrong with a number is reported at the line that has it. What a configuration does
// not say is chosen as the framework does: attention in one kernel.
#pragma once

#include <optional>

#include "base/json/json.h"

namespace interlock {

/// Longest sequence that max_position_embeddings stands for by itself. Beyond, it says what a model
/// can be asked, not what it is trained with.
inline constexpr int kLongestAssumed = 32'768;

/// Returns true if an object is a configuration of Hugging Face, not a model of our own.
bool is_config(const JsonValue& object);

/// Returns the model; adds a diagnostic if there is none: an unknown model_type, or layers of
/// several forms. "sequence_length" is null where the configuration has none that could be meant.
std::optional<JsonValue> model_of_config(const JsonNode& config, Diagnostics& diagnostics);

/// Takes away the note on a length of samples that was assumed.
void drop_note_on_length(JsonValue& model);

}  // namespace interlock
