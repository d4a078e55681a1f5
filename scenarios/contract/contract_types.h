// ContractType, ContractKey, ContractObject: rows of the scenario contract.
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

#include <optional>
#include <string>
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
  std::string key;
  ContractType type;
  /// Tells what holds without the key: "required", a value (names without quotes), or a few words.
  std::string otherwise;
  std::string meaning;                 // sentences, with names of keys and values in backticks
  std::vector<std::string> with = {};  // the kinds of its object that use it; empty: all
  std::optional<JsonValue> value =
      {};  // `otherwise`, where it is a value; scenario_contract() adds it
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

/// Returns the value that `key.otherwise` says; nothing if it is "required" or words.
std::optional<JsonValue> default_value(const ContractKey& key);
/// Returns the first form of `form` that `type` may have; null if it has none.
const ContractType* form_of(const ContractType& type, ContractType::Form form);

/// The words that the files of the table are written in, and the objects that each file holds.
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

// Types that several sections have.
ContractType strategy_type();
ContractType schedule_type();
ContractType recompute_type();
ContractType partition_type();
ContractType head_type();
std::vector<ContractKey> length_keys();

std::vector<ContractObject> document_objects();
std::vector<ContractObject> parallel_objects();
std::vector<ContractObject> training_objects();
std::vector<ContractObject> run_objects();
std::vector<ContractObject> swarm_objects();
std::vector<ContractObject> variation_objects();
std::vector<ContractObject> sweep_objects();
std::vector<ContractObject> model_objects();
std::vector<ContractObject> cluster_objects();
std::vector<ContractObject> network_objects();
std::vector<ContractObject> device_objects();

}  // namespace contract
}  // namespace interlock
