// Block reader: an item's keys over the model's.
// SPDX-License-Identifier: Apache-2.0
#include "models/transformer/block_reader.h"

namespace interlock {

bool BlockReader::in_item(std::string_view key) {
  return item_ != nullptr && item_->get(key).has_value();
}

std::optional<JsonNode> BlockReader::get(std::string_view key) {
  const std::optional<JsonNode> of_model = model_->get(key);
  const std::optional<JsonNode> own = item_ ? item_->get(key) : std::nullopt;
  if (!own) return of_model;
  return own->value->kind == JsonValue::Kind::Null ? std::nullopt : own;
}

JsonNode BlockReader::place_of(std::string_view key) {
  return get(key).value_or(item_ ? item_->node() : model_->node());
}

bool BlockReader::boolean(std::string_view key, bool otherwise) {
  const auto node = get(key);
  return node ? read_boolean(*node, diagnostics()).value_or(otherwise) : otherwise;
}

double BlockReader::number(std::string_view key, double otherwise, double least, double most) {
  const auto node = get(key);
  return node ? read_number(*node, least, most, diagnostics()).value_or(otherwise) : otherwise;
}

int BlockReader::count(std::string_view key, int otherwise, int least, int most) {
  const auto node = get(key);
  return node ? read_count(*node, least, most, diagnostics()).value_or(otherwise) : otherwise;
}

int BlockReader::required_count(std::string_view key, std::string_view expected, int most) {
  const auto node = get(key);
  if (!node) model_->require(key, expected);
  return node ? read_count(*node, 1, most, diagnostics()).value_or(1) : 1;
}

int BlockReader::choice(std::string_view key, const std::vector<std::string>& names,
                        int otherwise) {
  const auto node = get(key);
  return node ? read_choice(*node, names, diagnostics()).value_or(otherwise) : otherwise;
}

void append_unused(BlockReader& reader, const std::vector<std::string_view>& keys,
                   const std::string& reason, std::vector<UnusedKey>& unused) {
  for (const std::string_view key : keys) {
    if (reader.get(key)) unused.push_back({std::string(key), reason});
  }
}

}  // namespace interlock
