// Puts the table of the scenario contract together, and reads sections by it.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/contract/contract.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace interlock {
namespace {

using Form = ContractType::Form;

std::size_t key_index(const ContractObject& object, std::string_view key) {
  const auto found = std::find_if(object.keys.begin(), object.keys.end(),
                                  [&](const ContractKey& entry) { return entry.key == key; });
  CHECK(found != object.keys.end(),
        "the contract's object \"" + object.name + "\" has no key " + std::string(key));
  return static_cast<std::size_t>(found - object.keys.begin());
}

/// Returns the form of `key` that is asked for; for a list, that of its items.
const ContractType& form_at(const ContractKey& key, Form form) {
  const ContractType* found = form_of(key.type, form);
  const ContractType* list = found ? nullptr : form_of(key.type, Form::List);
  if (list) found = form_of(list->of.front(), form);
  CHECK(found != nullptr, "the contract's key \"" + key.key + "\" has the type it is read as");
  return *found;
}

const JsonValue& default_of(const ContractKey& key) {
  CHECK(key.value.has_value(), "the contract's key \"" + key.key + "\" has a default");
  return *key.value;
}

int whole_bound(double bound, int otherwise) {
  return std::isfinite(bound) ? static_cast<int>(bound) : otherwise;
}

std::vector<ContractObject> make_contract() {
  std::vector<ContractObject> all = contract::document_objects();
  for (auto* part : {contract::parallel_objects, contract::training_objects, contract::run_objects,
                     contract::swarm_objects, contract::variation_objects, contract::sweep_objects,
                     contract::model_objects, contract::cluster_objects, contract::network_objects,
                     contract::device_objects}) {
    for (ContractObject& object : part()) all.push_back(std::move(object));
  }
  for (ContractObject& object : all) {
    for (ContractKey& key : object.keys) key.value = default_value(key);
  }
  return all;
}

}  // namespace

const std::vector<ContractObject>& scenario_contract() {
  static const std::vector<ContractObject> contract = make_contract();
  return contract;
}

const ContractObject& contract_object(std::string_view name) {
  const std::vector<ContractObject>& contract = scenario_contract();
  const auto found =
      std::find_if(contract.begin(), contract.end(),
                   [&](const ContractObject& object) { return object.name == name; });
  CHECK(found != contract.end(), "the contract has no object " + std::string(name));
  return *found;
}

const std::vector<std::string>& contract_names(std::string_view object, std::string_view key) {
  const ContractObject& found = contract_object(object);
  return form_at(found.keys[key_index(found, key)], Form::Names).names;
}

Section::Section(std::string_view object, JsonNode node, Diagnostics& diagnostics)
    : object_(&contract_object(object)),
      asked_(object_->keys.size(), false),
      reader_(std::move(node), diagnostics) {}

const ContractKey& Section::asked(std::string_view key) {
  const std::size_t index = key_index(*object_, key);
  asked_[index] = true;
  return object_->keys[index];
}

std::optional<JsonNode> Section::get(std::string_view key) { return reader_.get(asked(key).key); }

std::optional<JsonNode> Section::require(std::string_view key, std::string_view expected) {
  return reader_.require(asked(key).key, expected);
}

bool Section::boolean(std::string_view key) {
  const ContractKey& entry = asked(key);
  return reader_.boolean(entry.key, default_of(entry).boolean);
}

int Section::count(std::string_view key) {
  return count(key, static_cast<int>(default_of(asked(key)).number));
}

int Section::count(std::string_view key, int otherwise) {
  return written_count(key).value_or(otherwise);
}

double Section::number(std::string_view key) {
  return written_number(key).value_or(default_of(asked(key)).number);
}

Seconds Section::seconds(std::string_view key) {
  return written_seconds(key).value_or(Seconds(parse_quantity(default_of(asked(key)).text)->value));
}

int Section::choice(std::string_view key) {
  const ContractKey& entry = asked(key);
  const std::vector<std::string>& names = form_at(entry, Form::Names).names;
  const auto usual = std::find(names.begin(), names.end(), default_of(entry).text);
  return choice(key, static_cast<int>(usual - names.begin()));
}

int Section::choice(std::string_view key, int otherwise) {
  const ContractKey& entry = asked(key);
  return reader_.choice(entry.key, form_at(entry, Form::Names).names, otherwise);
}

std::string Section::text(std::string_view key, std::string_view otherwise) {
  return reader_.text(asked(key).key, otherwise);
}

std::optional<int> Section::written_count(std::string_view key) {
  const auto node = get(key);
  return node ? count_at(key, *node) : std::nullopt;
}

std::optional<double> Section::written_number(std::string_view key) {
  const auto node = get(key);
  return node ? number_at(key, *node) : std::nullopt;
}

std::optional<Seconds> Section::written_seconds(std::string_view key) {
  const auto node = get(key);
  return node ? read_seconds(*node, diagnostics()) : std::nullopt;
}

std::optional<Seconds> Section::written_duration(std::string_view key) {
  const auto node = get(key);
  return node ? read_duration(*node, diagnostics()) : std::nullopt;
}

std::optional<int> Section::count_at(std::string_view key, const JsonNode& node) {
  const ContractType& type = form_at(asked(key), Form::Whole);
  constexpr int kMost = 1'000'000'000;
  return read_count(node, whole_bound(type.least, 0), whole_bound(type.most, kMost), diagnostics());
}

std::optional<double> Section::number_at(std::string_view key, const JsonNode& node) {
  const ContractType& type = form_at(asked(key), Form::Number);
  return read_number(node, type.least, type.most, diagnostics());
}

void Section::finish() {
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    CHECK(asked_[i], "the loader never asks for " + object_->name + "." + object_->keys[i].key);
  }
  reader_.finish();
}

}  // namespace interlock
