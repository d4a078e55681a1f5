// Block reader: an item's keys over the model's.
// SPDX-License-Identifier: Apache-2.0
#include "models/transformer/block_reader.h"

#include <algorithm>

namespace interlock {
namespace {

const ContractObject& item_rows() {
  return contract_object(transformer_contract(), "model.transformer.layer_pattern");
}

}  // namespace

/// Returns what the item says, null included; nothing for a key that items do not have.
std::optional<JsonNode> BlockReader::own(std::string_view key) {
  const auto is_key = [&](const ContractKey& row) { return row.key == key; };
  if (item_ == nullptr || std::ranges::none_of(item_rows().keys, is_key)) return std::nullopt;
  return item_->get(key);
}

bool BlockReader::in_item(std::string_view key) { return own(key).has_value(); }

std::optional<JsonNode> BlockReader::get(std::string_view key) {
  std::optional<JsonNode> of_model = model_->get(key), of_item = own(key);
  if (!of_item) return of_model;
  if (of_item->value->kind == JsonValue::Kind::Null) return std::nullopt;
  return of_item;
}

JsonNode BlockReader::place_of(std::string_view key) {
  return get(key).value_or(item_ ? item_->node() : model_->node());
}

bool BlockReader::boolean(std::string_view key, bool otherwise) {
  const auto node = get(key);
  return node ? read_boolean(*node, diagnostics()).value_or(otherwise) : otherwise;
}

double BlockReader::number(std::string_view key, double otherwise) {
  const auto node = get(key);
  return node ? model_->number_at(key, *node).value_or(otherwise) : otherwise;
}

std::optional<int> BlockReader::written_count(std::string_view key) {
  const auto node = get(key);
  return node ? model_->count_at(key, *node) : std::nullopt;
}

int BlockReader::count(std::string_view key, int otherwise) {
  return written_count(key).value_or(otherwise);
}

int BlockReader::required_count(std::string_view key, std::string_view expected) {
  if (!get(key)) model_->require(key, expected);
  return count(key, 1);
}

int BlockReader::choice(std::string_view key, int otherwise) {
  const auto node = get(key);
  const std::vector<std::string>& names = contract_names(item_rows(), key);
  return node ? read_choice(*node, names, diagnostics()).value_or(otherwise) : otherwise;
}

void append_unused(BlockReader& reader, const std::vector<std::string_view>& keys,
                   const std::string& reason, std::vector<UnusedKey>& unused) {
  for (const std::string_view key : keys) {
    if (reader.get(key)) unused.push_back({std::string(key), reason});
  }
}

}  // namespace interlock
