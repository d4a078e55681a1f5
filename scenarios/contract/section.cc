// Section: the reader that holds the loader to the table of the contract.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "scenarios/contract/contract.h"

namespace interlock {
namespace {

const ContractObject& contract_object(std::string_view path) {
  const std::vector<ContractObject>& contract = scenario_contract();
  const auto found =
      std::find_if(contract.begin(), contract.end(),
                   [&](const ContractObject& object) { return object.path == path; });
  CHECK(found != contract.end(), "the contract has no object " + std::string(path));
  return *found;
}

std::size_t key_index(const ContractObject& object, std::string_view key) {
  const auto found = std::find_if(object.keys.begin(), object.keys.end(),
                                  [&](const ContractKey& entry) { return entry.key == key; });
  CHECK(found != object.keys.end(),
        "the contract's object \"" + object.path + "\" has no key " + std::string(key));
  return static_cast<std::size_t>(found - object.keys.begin());
}

}  // namespace

const std::vector<std::string>& contract_names(std::string_view path, std::string_view key) {
  const ContractObject& object = contract_object(path);
  return object.keys[key_index(object, key)].names;
}

Section::Section(std::string_view path, JsonNode node, Diagnostics& diagnostics)
    : object_(&contract_object(path)),
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

bool Section::boolean(std::string_view key, bool otherwise) {
  return reader_.boolean(asked(key).key, otherwise);
}

int Section::count(std::string_view key, int otherwise, int least, int most) {
  return reader_.count(asked(key).key, otherwise, least, most);
}

std::optional<int> Section::count(std::string_view key, int most) {
  if (const auto node = get(key)) return read_count(*node, 1, most, diagnostics());
  return std::nullopt;
}

std::string Section::text(std::string_view key, std::string_view otherwise) {
  return reader_.text(asked(key).key, otherwise);
}

int Section::choice(std::string_view key, int otherwise) {
  const ContractKey& entry = asked(key);
  return reader_.choice(entry.key, entry.names, otherwise);
}

void Section::finish() {
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    CHECK(asked_[i], "the loader never asks for " + object_->path + "." + object_->keys[i].key);
  }
  reader_.finish();
}

}  // namespace interlock
