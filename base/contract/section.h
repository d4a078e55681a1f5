// Section: reads the members of one object by their rows of the contract.
// SPDX-License-Identifier: Apache-2.0
//
// Example:
//   Section section(resnet_contract().front(), node, diagnostics);
//   net.base_width = section.count("base_width");  // in the row's range, the row's default
//   section.finish();                              // reports keys that the object does not have
//
// Types, ranges, names and defaults stand in the row alone; a reader gives a default where it
// follows from other keys. Section refuses (as a bug) a key that the object lacks, and a key of the
// object that the reader never asks for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/contract/contract_types.h"
#include "base/json/json.h"

namespace interlock {

/// REQUIRES of each read: the key has that type, and a default where the caller gives none.
class Section {
 public:
  /// `object` outlives the section.
  Section(const ContractObject& object, JsonNode node, Diagnostics& diagnostics);

  std::optional<JsonNode> get(std::string_view key);
  std::optional<JsonNode> require(std::string_view key, std::string_view expected);

  bool boolean(std::string_view key);
  bool boolean(std::string_view key, bool otherwise);
  int count(std::string_view key);
  int count(std::string_view key, int otherwise);
  /// Reports the absence of the key, with what was `expected`. Returns 1 after any mistake.
  int required_count(std::string_view key, std::string_view expected);
  double number(std::string_view key);
  double number(std::string_view key, double otherwise);
  Seconds seconds(std::string_view key);
  Bytes bytes(std::string_view key);
  Bytes bytes(std::string_view key, Bytes otherwise);
  /// Returns the index of a name among contract_names.
  int choice(std::string_view key);
  int choice(std::string_view key, int otherwise);
  std::string text(std::string_view key, std::string_view otherwise);

  // These return nothing if the key is absent or wrong.
  std::optional<int> written_count(std::string_view key);
  std::optional<double> written_number(std::string_view key);
  std::optional<Seconds> written_seconds(std::string_view key);
  std::optional<Seconds> written_duration(std::string_view key);  // above zero

  // These read `node`, the value of the key or an item of its list, by the row of the key.
  std::optional<int> count_at(std::string_view key, const JsonNode& node);
  std::optional<double> number_at(std::string_view key, const JsonNode& node);
  /// Returns the items of a list. If it is none, or has too few or too many of them, reports that:
  /// `wrong` "wrong list of groups", then "; expected 1 to 8 ", then `items` "numbers of blocks".
  std::vector<JsonNode> items_at(std::string_view key, const JsonNode& node, std::string_view wrong,
                                 std::string_view items);

  /// Reports each key that means nothing for `kind`, e.g. "overlapping", of a `noun`, "strategy".
  /// An empty kind is none that is written.
  void refuse_unused(const std::string& kind, const std::string& noun);
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
