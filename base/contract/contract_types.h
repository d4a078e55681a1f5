// ContractType, ContractKey, ContractObject: rows of the scenario contract, of any room.
// SPDX-License-Identifier: Apache-2.0
//
// A row says all that is known of a key:
//
//   {"recompute", either({one_of({"none", "full"}), object("training.recompute")}), "none",
//    "What a forward keeps for the backward."}
//
// is a key whose value is one of two names, or an object with keys of its own; left out, it is
// "none"; and the sentence is what editors and docs/reference.md say of it.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "base/text.h"

namespace interlock {

/// Tells how a value is written; `form` says which of the other members count.
struct ContractType {
  enum class Form {
    Text,
    Boolean,
    Whole,
    Number,
    Quantity,
    Price,
    Names,
    Object,
    List,
    Map,
    Either,
    Null,
    Anything
  };
  Form form = Form::Anything;
  double least = -kInfinity, most = kInfinity;  // Whole, Number: bounds; List, Map: of its length
  bool above = false;                           // Number: above its least bound
  int multiple = 1;                             // Whole: of which it is one
  std::vector<int> numbers;                     // Whole: all that there are, if they are few
  WrittenQuantity::Dimension dimension = WrittenQuantity::Dimension::Time;  // Quantity
  std::vector<std::string> names;                                           // Names
  std::vector<std::string> (*known)() = nullptr;  // Text: names that editors offer, files besides
  std::string example;                            // Text: one, as it is written
  std::string object;                             // Object: its name in the contract
  std::vector<ContractType> of;                   // List, Map: of one item; Either: of each form
  bool distinct = false;                          // List: no item stands twice
  bool paths = false;                             // Map: keys are paths of a sweep
};

/// A key of one object.
struct ContractKey {
  ContractKey(std::string key, ContractType type, std::string otherwise, std::string meaning,
              std::vector<std::string> with = {});

  std::string key;
  ContractType type;
  /// Tells what holds without the key: "required", a value (names without quotes), or a few words.
  std::string otherwise;
  std::string meaning;             // sentences, with names of keys and values in backticks
  std::vector<std::string> with;   // the kinds of its object that use it; empty: all
  std::optional<JsonValue> value;  // `otherwise`, where it is a value
};

/// One object of a scenario.
struct ContractObject {
  std::string name;     // the dotted path that leads to it; alternatives end in their kind
  std::string meaning;  // sentences, as of a key
  std::vector<ContractKey> keys;
  std::vector<std::vector<std::string>> needs = {};  // all keys of one of these sets are there
  std::vector<std::vector<std::string>> apart = {};  // of each of these sets a key is missing
  std::optional<ContractType> others = {};           // Map: further keys
};

/// Returns the first form of `form` that `type` may have; null if it has none.
const ContractType* form_of(const ContractType& type, ContractType::Form form);
/// Returns the object of that name. REQUIRES: it is in `contract`.
const ContractObject& contract_object(const std::vector<ContractObject>& contract,
                                      std::string_view name);
/// Returns the row of `key`. REQUIRES: `object` has it.
const ContractKey& contract_key(const ContractObject& object, std::string_view key);
/// Returns the form of `key` that is asked for; for a list, that of its items. REQUIRES: it has it.
const ContractType& form_at(const ContractKey& key, ContractType::Form form);
/// Returns the names that `key` of `object` accepts. REQUIRES: it is there and has names.
const std::vector<std::string>& contract_names(const ContractObject& object, std::string_view key);

/// The words that rows are written in.
namespace contract {

ContractType text(std::string example = "");
/// Makes a type of names of a catalogue, and paths of files.
ContractType named(std::vector<std::string> (*known)());
ContractType boolean();
ContractType whole(double least, double most = kInfinity);
ContractType number(double least = -kInfinity, double most = kInfinity);
ContractType above(double least);
ContractType time();
ContractType size();
ContractType bandwidth();  // above zero
ContractType flop_rate();  // above zero
ContractType power();
ContractType price();
ContractType one_of(std::vector<std::string> names);
ContractType one_of_numbers(std::vector<int> numbers);
ContractType object(std::string name);
ContractType list(const ContractType& item, double least = 0, double most = kInfinity);
ContractType map(const ContractType& value, double least = 0);
ContractType either(std::vector<ContractType> forms);
ContractType nothing();
ContractType anything();
/// Makes a type of one value, or a list of some.
ContractType one_or_more(const ContractType& item);

/// Returns the rows, or objects, of all `parts` in turn.
template <class Row>
std::vector<Row> joined(std::initializer_list<std::vector<Row>> parts) {
  std::vector<Row> all;
  for (const std::vector<Row>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace contract
}  // namespace interlock
