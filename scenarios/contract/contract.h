// The scenario contract as data: every object, its keys, and the names each key accepts.
// SPDX-License-Identifier: Apache-2.0
//
// The loader reads through Section, which refuses (as a bug) a key that the table lacks, and a
// table key that the loader never asks for. The JSON Schema is tested against the same table. So
// table, loader and schema cannot drift apart. Model and cluster objects belong to their own
// folders.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"

namespace interlock {

/// A key of one object; `names` are the texts it accepts, empty if it is no choice.
struct ContractKey {
  std::string key;
  std::vector<std::string> names;
};

/// One object of a scenario; `path` is dotted, "" for the document.
struct ContractObject {
  std::string path;
  std::vector<ContractKey> keys;
};

/// Every object that the scenario loader itself reads.
const std::vector<ContractObject>& scenario_contract();
/// The names that `key` of the object at `path` accepts. REQUIRES: it is in the contract.
const std::vector<std::string>& contract_names(std::string_view path, std::string_view key);

/// An ObjectReader bound to its object of the contract.
class Section {
 public:
  Section(std::string_view path, JsonNode node, Diagnostics& diagnostics);

  std::optional<JsonNode> get(std::string_view key);
  std::optional<JsonNode> require(std::string_view key, std::string_view expected);
  bool boolean(std::string_view key, bool otherwise);
  int count(std::string_view key, int otherwise, int least, int most);
  std::optional<int> count(std::string_view key, int most);  // at least 1; nothing if absent
  std::string text(std::string_view key, std::string_view otherwise);
  int choice(std::string_view key, int otherwise);

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
