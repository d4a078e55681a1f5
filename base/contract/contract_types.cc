// Rows of the scenario contract: their types, and the values that stand for absent keys.
// SPDX-License-Identifier: Apache-2.0
#include "base/contract/contract_types.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace interlock {
namespace {

using Form = ContractType::Form;
using QuantityKind = WrittenQuantity::Dimension;

ContractType of_dimension(QuantityKind dimension) {
  return {.form = Form::Quantity, .dimension = dimension};
}

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

/// Returns the value that `text` says for a key of `type`; nothing if it is "required" or words.
std::optional<JsonValue> default_value(const ContractType& type, const std::string& text) {
  if (const ContractType* choice = form_of(type, Form::Names)) {
    const auto& names = choice->names;
    if (std::find(names.begin(), names.end(), text) != names.end()) return json_text(text);
  }
  if (form_of(type, Form::Quantity) && parse_quantity(text)) return json_text(text);
  if (is_number(text)) return json_number(std::strtod(text.c_str(), nullptr));
  if (text == "true" || text == "false") return json_boolean(text == "true");
  if (text.starts_with('[')) return parse_json(text, "the contract");
  return std::nullopt;
}

}  // namespace

ContractKey::ContractKey(std::string key, ContractType type, std::string otherwise,
                         std::string meaning, std::vector<std::string> with)
    : key(std::move(key)),
      type(std::move(type)),
      otherwise(std::move(otherwise)),
      meaning(std::move(meaning)),
      with(std::move(with)),
      value(default_value(this->type, this->otherwise)) {}

const ContractType* form_of(const ContractType& type, ContractType::Form form) {
  if (type.form == form) return &type;
  if (type.form != Form::Either) return nullptr;
  for (const ContractType& one : type.of) {
    if (const ContractType* found = form_of(one, form)) return found;
  }
  return nullptr;
}

const ContractObject& contract_object(const std::vector<ContractObject>& contract,
                                      std::string_view name) {
  const auto found =
      std::find_if(contract.begin(), contract.end(),
                   [&](const ContractObject& object) { return object.name == name; });
  CHECK(found != contract.end(), "the contract has no object " + std::string(name));
  return *found;
}

const ContractKey& contract_key(const ContractObject& object, std::string_view key) {
  const auto found = std::find_if(object.keys.begin(), object.keys.end(),
                                  [&](const ContractKey& entry) { return entry.key == key; });
  CHECK(found != object.keys.end(),
        "the contract's object \"" + object.name + "\" has no key " + std::string(key));
  return *found;
}

const ContractType& form_at(const ContractKey& key, ContractType::Form form) {
  const ContractType* found = form_of(key.type, form);
  const ContractType* list = found ? nullptr : form_of(key.type, Form::List);
  if (list) found = form_of(list->of.front(), form);
  CHECK(found != nullptr, "the contract's key \"" + key.key + "\" has the type it is read as");
  return *found;
}

const std::vector<std::string>& contract_names(const ContractObject& object, std::string_view key) {
  return form_at(contract_key(object, key), Form::Names).names;
}

namespace contract {

ContractType text(std::string example) {
  return {.form = Form::Text, .example = std::move(example)};
}

ContractType named(std::vector<std::string> (*known)()) {
  return {.form = Form::Text, .known = known};
}

ContractType boolean() { return {.form = Form::Boolean}; }

ContractType whole(double least, double most) {
  return {.form = Form::Whole, .least = least, .most = most};
}

ContractType number(double least, double most) {
  return {.form = Form::Number, .least = least, .most = most};
}

ContractType above(double least) { return {.form = Form::Number, .least = least, .above = true}; }

ContractType time() { return of_dimension(QuantityKind::Time); }
ContractType size() { return of_dimension(QuantityKind::Size); }
ContractType bandwidth() { return of_dimension(QuantityKind::Bandwidth); }
ContractType flop_rate() { return of_dimension(QuantityKind::FlopRate); }
ContractType power() { return of_dimension(QuantityKind::Power); }
ContractType price() { return {.form = Form::Price}; }

ContractType one_of(std::vector<std::string> names) {
  return {.form = Form::Names, .names = std::move(names)};
}

ContractType one_of_numbers(std::vector<int> numbers) {
  return {.form = Form::Whole, .numbers = std::move(numbers)};
}

ContractType object(std::string name) { return {.form = Form::Object, .object = std::move(name)}; }

ContractType list(const ContractType& item, double least, double most) {
  return {.form = Form::List, .least = least, .most = most, .of = {item}};
}

ContractType map(const ContractType& value, double least) {
  return {.form = Form::Map, .least = least, .of = {value}};
}

ContractType either(std::vector<ContractType> forms) {
  return {.form = Form::Either, .of = std::move(forms)};
}

ContractType nothing() { return {.form = Form::Null}; }
ContractType anything() { return {.form = Form::Anything}; }
ContractType one_or_more(const ContractType& item) { return either({item, list(item, 1)}); }

}  // namespace contract
}  // namespace interlock
