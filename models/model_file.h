// ModelFile: finds the object that describes a model: in the zoo, in a file, or on the spot.
// SPDX-License-Identifier: Apache-2.0
//
// Example: "gpt2-xl" means the object in models/zoo/gpt2-xl.json; {"base": "gpt2-xl", "layers": 12}
// is the same with 12 layers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"

namespace interlock {

/// An object with a "kind", maybe, and where it was found.
struct ModelObject {
  JsonNode node;
  std::string name;                       // of its file, without folders and ending; else empty
  std::shared_ptr<const JsonValue> file;  // holds what `node` points to; none of an inline object
};

/// Returns the object that `model` means: a zoo name, a path of a model file, or an object itself;
/// a config.json of Hugging Face as a transformer; and {"base": any of these, ...} as its base with
/// the other keys in the place of the base's. A diagnostic is added if there is none. What is wrong
/// with a model of the zoo is wrong where it is named.
std::optional<ModelObject> find_model(const JsonNode& model, Diagnostics& diagnostics);

/// Returns the names of the models in the zoo, sorted.
std::vector<std::string> zoo_names();

}  // namespace interlock
