// Writes the scenario contract as a JSON Schema.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/contract/json_schema.h"

#include <cmath>
#include <utility>

#include "base/text.h"
#include "scenarios/contract/contract.h"

namespace interlock {
namespace {

using Form = ContractType::Form;
using QuantityKind = WrittenQuantity::Dimension;

constexpr const char* kNumber = R"(^[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)? *)";
constexpr const char* kAboveZero = R"((?=[0-9.]*[1-9]))";
/// Dotted paths with commas between them, none of them into the sweep itself.
constexpr const char* kSweptPaths = R"(^(?!sweep(\.|$))[^.,]+(\.[^.,]+)*(, *[^.,]+(\.[^.,]+)*)*$)";

struct QuantityDefinition {
  QuantityKind dimension;
  std::string name;
  std::string example;
  bool above_zero;
};

const std::vector<QuantityDefinition>& quantities() {
  static const std::vector<QuantityDefinition> all = {
      {QuantityKind::Time, "time", "3 us", false},
      {QuantityKind::Size, "size", "80 GiB", false},
      {QuantityKind::Bandwidth, "bandwidth", "450 GB/s", true},
      {QuantityKind::FlopRate, "flop_rate", "989 TFLOP/s", true},
      {QuantityKind::Power, "power", "400 W", false}};
  return all;
}

/// Returns `text` for editors: without backticks, and links as their words.
std::string plain(std::string text) {
  for (std::size_t middle = text.find("]("); middle != std::string::npos;
       middle = text.find("](")) {
    const std::size_t start = text.rfind('[', middle), end = text.find(')', middle);
    text.erase(middle, end + 1 - middle).erase(start, 1);
  }
  std::erase(text, '`');
  return text;
}

JsonValue with(JsonValue object, const std::string& key, JsonValue value) {
  object.members.push_back({key, std::move(value)});
  return object;
}

JsonValue of_type(const std::string& type) { return json_object({{"type", json_text(type)}}); }

JsonValue reference(const std::string& name) {
  const std::string place = name.empty() ? "#" : "#/definitions/" + name;  // the document itself
  return json_object({{"$ref", json_text(place)}});
}

/// Adds the finite bounds of `type` to `object`.
JsonValue bounded(JsonValue object, const ContractType& type, const std::string& least,
                  const std::string& most) {
  const bool counts = type.form == Form::List || type.form == Form::Map;
  if (std::isfinite(type.least) && !(counts && type.least == 0)) {
    object = with(std::move(object), least, json_number(type.least));
  }
  if (std::isfinite(type.most)) object = with(std::move(object), most, json_number(type.most));
  return object;
}

JsonValue schema_of(const ContractType& type);

JsonValue text_schema(const ContractType& type) {
  std::vector<std::string> examples;
  if (type.known) examples = type.known();
  if (!type.example.empty()) examples.push_back(type.example);
  if (examples.empty()) return of_type("string");
  return with(of_type("string"), "examples", json_texts(examples));
}

JsonValue number_schema(const ContractType& type) {
  if (!type.numbers.empty()) {
    std::vector<JsonValue> numbers;
    for (const int number : type.numbers) numbers.push_back(json_number(number));
    return json_object({{"enum", json_list(std::move(numbers))}});
  }
  JsonValue schema = bounded(of_type(type.form == Form::Whole ? "integer" : "number"), type,
                             type.above ? "exclusiveMinimum" : "minimum", "maximum");
  if (type.multiple == 1) return schema;
  return with(std::move(schema), "multipleOf", json_number(type.multiple));
}

JsonValue map_schema(const ContractType& type) {
  JsonValue schema = bounded(of_type("object"), type, "minProperties", "maxProperties");
  if (type.paths) {
    schema = with(std::move(schema), "propertyNames",
                  json_object({{"pattern", json_text(kSweptPaths)}}));
  }
  if (type.of.front().form == Form::Anything) return schema;
  return with(std::move(schema), "additionalProperties", schema_of(type.of.front()));
}

JsonValue list_schema(const ContractType& type) {
  JsonValue schema = with(of_type("array"), "items", schema_of(type.of.front()));
  schema = bounded(std::move(schema), type, "minItems", "maxItems");
  if (!type.distinct) return schema;
  return with(std::move(schema), "uniqueItems", json_boolean(true));
}

JsonValue schema_of(const ContractType& type) {
  switch (type.form) {
    case Form::Text:
      return text_schema(type);
    case Form::Boolean:
      return of_type("boolean");
    case Form::Whole:
    case Form::Number:
      return number_schema(type);
    case Form::Quantity:
      for (const QuantityDefinition& quantity : quantities()) {
        if (quantity.dimension == type.dimension) return reference(quantity.name);
      }
      break;
    case Form::Price:
      return reference("price");
    case Form::Names:
      return json_object({{"enum", json_texts(type.names)}});
    case Form::Object:
      return reference(type.object);
    case Form::List:
      return list_schema(type);
    case Form::Map:
      return map_schema(type);
    case Form::Either: {
      std::vector<JsonValue> forms;
      for (const ContractType& form : type.of) forms.push_back(schema_of(form));
      return json_object({{"anyOf", json_list(std::move(forms))}});
    }
    case Form::Null:
      return of_type("null");
    case Form::Anything:
      break;
  }
  return json_object({});
}

JsonValue key_schema(const ContractKey& key) {
  JsonValue schema = schema_of(key.type);
  // Draft 07 reads nothing beside a reference.
  if (schema.find("$ref")) schema = json_object({{"allOf", json_list({std::move(schema)})}});
  std::string meaning = meaning_of(key);
  if (key.value) {
    schema = with(std::move(schema), "default", *key.value);
  } else if (!key.otherwise.empty() && !key.otherwise.starts_with("required")) {
    meaning += " Default: " + key.otherwise + ".";
  }
  return with(std::move(schema), "description", json_text(plain(meaning)));
}

JsonValue all_required(const std::vector<std::string>& keys) {
  return json_object({{"required", json_texts(keys)}});
}

std::vector<JsonValue> each_required(const std::vector<std::vector<std::string>>& sets) {
  std::vector<JsonValue> all;
  all.reserve(sets.size());
  for (const auto& set : sets) all.push_back(all_required(set));
  return all;
}

JsonValue object_schema(const ContractObject& object) {
  JsonValue schema = with(of_type("object"), "description", json_text(plain(object.meaning)));
  JsonValue properties = json_object({});
  std::vector<std::string> required;
  for (const ContractKey& key : object.keys) {
    properties.members.push_back({key.key, key_schema(key)});
    if (key.otherwise == "required") required.push_back(key.key);
  }
  schema = with(std::move(schema), "properties", std::move(properties));
  if (!required.empty()) schema = with(std::move(schema), "required", json_texts(required));
  if (!object.needs.empty()) {
    schema = with(std::move(schema), "anyOf", json_list(each_required(object.needs)));
  }
  if (!object.apart.empty()) {
    schema = with(std::move(schema), "not",
                  json_object({{"anyOf", json_list(each_required(object.apart))}}));
  }
  if (!object.others) return with(std::move(schema), "additionalProperties", json_boolean(false));
  for (auto& [keyword, rule] : map_schema(*object.others).members) {
    if (keyword != "type") schema = with(std::move(schema), keyword, std::move(rule));
  }
  return schema;
}

JsonValue quantity_schema(const QuantityDefinition& quantity) {
  std::string pattern = kNumber;
  if (quantity.above_zero) pattern.insert(1, kAboveZero);
  for (const std::string& unit : unit_names(quantity.dimension)) {
    pattern += (pattern.ends_with('*') ? "(" : "|") + unit;
  }
  return json_object({{"type", json_text("string")},
                      {"pattern", json_text(pattern + ")$")},
                      {"examples", json_texts({quantity.example})}});
}

JsonValue definitions() {
  JsonValue all = json_object({});
  for (const QuantityDefinition& quantity : quantities()) {
    all = with(std::move(all), quantity.name, quantity_schema(quantity));
  }
  all = with(std::move(all), "price",
             json_object({{"type", json_text("string")},
                          {"pattern", json_text(std::string(kNumber) + "[A-Z][A-Z][A-Z]/h$")},
                          {"examples", json_texts({"2.50 USD/h"})}}));
  for (const ContractObject& object : scenario_contract()) {
    if (!object.name.empty()) all = with(std::move(all), object.name, object_schema(object));
  }
  return all;
}

}  // namespace

std::string meaning_of(const ContractKey& key) {
  return key.with.empty() ? key.meaning : key.meaning + " For " + join_choices(key.with) + ".";
}

JsonValue json_schema() {
  JsonValue schema = json_object({{"$schema", json_text("http://json-schema.org/draft-07/schema#")},
                                  {"title", json_text("interlock scenario")},
                                  {"allowComments", json_boolean(true)}});
  for (JsonMember& member : object_schema(scenario_contract().front()).members) {
    schema.members.push_back(std::move(member));
  }
  return with(std::move(schema), "definitions", definitions());
}

}  // namespace interlock
