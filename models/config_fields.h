// Config fields: what a config.json of Hugging Face says, under one name for each thing.
// SPDX-License-Identifier: Apache-2.0
//
// Classes have names of their own for the same number (n_embd, d_model, hidden_size). A field is
// one of four: it shapes the model and its class knows it; it shapes models, but not those of this
// class, which is a mistake unless its value says "none"; it changes neither time nor memory
// (token numbers, initial deviations), and is dropped; or it is unknown. A known class does not
// look at fields that are unknown here, so they are dropped and named in a note; of an unknown
// class nothing is known but its fields, so each has to be understood.
//
// Example: {"model_type": "llama", "n_layer": 2, "bos_token_id": 1, "num_local_experts": 8} has
// two layers, and is refused for its experts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "models/config_types.h"

namespace interlock {

class ConfigFields {
 public:
  /// Reads `config`, over the defaults of its class; `type`: null for an unknown class, which needs
  /// to be understood by its fields. Adds a diagnostic for each field that must not be dropped.
  ConfigFields(const JsonNode& config, const ConfigType* type, Diagnostics& diagnostics);

  /// Returns a field by its one name; null if neither file nor class have it, or it is JSON's null.
  const JsonValue* find(std::string_view field) const;
  /// Returns the number of a field, or nothing if it has none; what is no number is reported, here
  /// or where the key that it becomes is read.
  std::optional<double> amount(std::string_view field) const;
  /// Returns true for a field that is true, or a number other than 0.
  bool is_true(std::string_view field) const;
  /// Returns the text of a field, or "".
  std::string word(std::string_view field) const;
  /// Returns the known model_type that an unknown one is near to.
  std::optional<std::string> nearest_type() const;
  /// Adds a diagnostic at an unknown model_type: the one that it is near to, and `why` it cannot
  /// do.
  void refuse_type(const std::string& why) const;
  /// Adds a diagnostic at a field.
  void refuse(std::string_view field, const std::string& message) const;

  /// Returns the names of fields that were dropped and are not known here.
  const std::vector<std::string>& unknown() const { return unknown_; }
  const JsonNode& config() const { return config_; }

 private:
  /// Reads a member of `place`, which is the configuration or a part of it.
  void read(const JsonNode& place, const JsonMember& member, const ConfigType* type);
  void refuse_unknown() const;
  /// Puts the number of layers, where it is not written, to that of their kinds.
  void count_layers();

  JsonNode config_;
  Diagnostics& diagnostics_;
  std::vector<JsonMember> fields_;
  std::vector<std::string> unknown_;
};

}  // namespace interlock
