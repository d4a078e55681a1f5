// The scenario contract: the table of all keys, and the reader that the loader reads them with.
// SPDX-License-Identifier: Apache-2.0
//
// Types, ranges, names and defaults stand in the table alone. Section refuses (as a bug) a key that
// the table lacks, and a key of the table that the loader never asks for. From the same table come
// the JSON Schema (json_schema.h) and docs/reference.md (reference_page.h). Models and clusters are
// in the table, too; their own folders read them, and tests hold these to it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "scenarios/contract/contract_types.h"

namespace interlock {

/// Returns every object of a scenario, the document first.
const std::vector<ContractObject>& scenario_contract();
/// Returns the object of that name. REQUIRES: it is in the contract.
const ContractObject& contract_object(std::string_view name);
/// Returns the names that `key` of the object accepts. REQUIRES: it is in the contract and has
/// names.
const std::vector<std::string>& contract_names(std::string_view object, std::string_view key);

/// Reads the members of one object by their rows of the contract.
/// REQUIRES of each read: the key has that type, and a default where the caller gives none.
class Section {
 public:
  Section(std::string_view object, JsonNode node, Diagnostics& diagnostics);

  std::optional<JsonNode> get(std::string_view key);
  std::optional<JsonNode> require(std::string_view key, std::string_view expected);

  bool boolean(std::string_view key);
  int count(std::string_view key);
  int count(std::string_view key, int otherwise);
  double number(std::string_view key);
  Seconds seconds(std::string_view key);
  /// Returns the index of a name among contract_names.
  int choice(std::string_view key);
  int choice(std::string_view key, int otherwise);
  std::string text(std::string_view key, std::string_view otherwise);

  // These return nothing if the key is absent or wrong.
  std::optional<int> written_count(std::string_view key);
  std::optional<double> written_number(std::string_view key);
  std::optional<Seconds> written_seconds(std::string_view key);
  std::optional<Seconds> written_duration(std::string_view key);  // above zero

  // These read `node`, the value of the key or an item of its list, by the range of the key.
  std::optional<int> count_at(std::string_view key, const JsonNode& node);
  std::optional<double> number_at(std::string_view key, const JsonNode& node);

  /// Reports unknown keys.
  void finish();

  const JsonNode& node() const { return reader_.node(); }
  Diagnostics& diagnostics() { return reader_.diagnostics(); }

 private:
  const ContractKey& asked(std::string_view key);

  const ContractObject* object_;
  std::vector<bool> asked_;
  ObjectReader reader_;
};

}  // namespace interlock
