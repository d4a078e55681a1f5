// Config images: what a config.json says of the part that reads images.
// SPDX-License-Identifier: Apache-2.0
//
// A model that sees has a tower, a transformer of patches in `vision_config`, and a projector to
// the width of its decoder, whose sizes stand in the tower or beside it. Both become an "encoder".
// Towers are told apart by their own model_type, or by the whole model's; projectors by the whole
// model's. How many images a sample has, no configuration says, and how large they are, only some:
// one image, and 448 pixels on a side where any size will do.
#pragma once

#include <optional>
#include <string>

#include "models/config_fields.h"
#include "models/config_types.h"

namespace interlock {

/// Returns the class of the tower in `config`, or null for one that is not known.
const ConfigType* tower_type(const JsonValue& config);

/// Puts into `encoder`, which has the sizes of a block, what towers have beside: patches,
/// positions, windows, and the projector of `config` to tokens `width` wide. REQUIRES:
/// tower_type(config) is not null.
void put_images(const JsonValue& config, const ConfigFields& tower, const JsonValue& width,
                JsonValue& encoder);

/// Returns what was assumed of the images of `encoder`, and what to type for others.
std::string note_on_images(const JsonValue& encoder);

/// Makes that note in `model`, which has keys over those of `base`, say what is still assumed.
void renew_note_on_images(const JsonValue& base, JsonValue& model);

}  // namespace interlock
