// Rows of the scenario contract: their types, and the values that stand for absent keys.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/contract/contract_types.h"

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

}  // namespace

const ContractType* form_of(const ContractType& type, ContractType::Form form) {
  if (type.form == form) return &type;
  if (type.form != Form::Either) return nullptr;
  for (const ContractType& one : type.of) {
    if (const ContractType* found = form_of(one, form)) return found;
  }
  return nullptr;
}

std::optional<JsonValue> default_value(const ContractKey& key) {
  const std::string& text = key.otherwise;
  if (const ContractType* choice = form_of(key.type, Form::Names)) {
    const auto& names = choice->names;
    if (std::find(names.begin(), names.end(), text) != names.end()) return json_text(text);
  }
  if (form_of(key.type, Form::Quantity) && parse_quantity(text)) return json_text(text);
  if (is_number(text)) return json_number(std::strtod(text.c_str(), nullptr));
  if (text == "true" || text == "false") return json_boolean(text == "true");
  if (text.starts_with('[')) return parse_json(text, "the contract");
  return std::nullopt;
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
