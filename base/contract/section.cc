// Reads sections by the rows of their objects.
// SPDX-License-Identifier: Apache-2.0
#include "base/contract/section.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace interlock {
namespace {

using Form = ContractType::Form;

const JsonValue& default_of(const ContractKey& key) {
  CHECK(key.value.has_value(), "the contract's key \"" + key.key + "\" has a default");
  return *key.value;
}

double default_quantity(const ContractKey& key) {
  return parse_quantity(default_of(key).text)->value;
}

int whole_bound(double bound, int otherwise) {
  return std::isfinite(bound) ? static_cast<int>(bound) : otherwise;
}

/// "1 to 8 ", "at least 1 ", or "a list of ".
std::string list_range(const ContractType& list) {
  const std::string least = described(json_number(list.least));
  if (std::isfinite(list.most)) return least + " to " + described(json_number(list.most)) + " ";
  return list.least > 0 ? "at least " + least + " " : "a list of ";
}

}  // namespace

Section::Section(const ContractObject& object, JsonNode node, Diagnostics& diagnostics)
    : object_(&object),
      asked_(object_->keys.size(), false),
      reader_(std::move(node), diagnostics) {}

const ContractKey& Section::asked(std::string_view key) {
  const ContractKey& row = contract_key(*object_, key);
  asked_[static_cast<std::size_t>(&row - object_->keys.data())] = true;
  return row;
}

std::optional<JsonNode> Section::get(std::string_view key) { return reader_.get(asked(key).key); }

std::optional<JsonNode> Section::require(std::string_view key, std::string_view expected) {
  return reader_.require(asked(key).key, expected);
}

bool Section::boolean(std::string_view key) { return boolean(key, default_of(asked(key)).boolean); }

bool Section::boolean(std::string_view key, bool otherwise) {
  return reader_.boolean(asked(key).key, otherwise);
}

int Section::count(std::string_view key) {
  return count(key, static_cast<int>(default_of(asked(key)).number));
}

int Section::count(std::string_view key, int otherwise) {
  return written_count(key).value_or(otherwise);
}

int Section::required_count(std::string_view key, std::string_view expected) {
  const auto node = require(key, expected);
  return node ? count_at(key, *node).value_or(1) : 1;
}

double Section::number(std::string_view key) { return number(key, default_of(asked(key)).number); }

double Section::number(std::string_view key, double otherwise) {
  return written_number(key).value_or(otherwise);
}

Seconds Section::seconds(std::string_view key) {
  const auto written = written_seconds(key);
  return written ? *written : Seconds(default_quantity(asked(key)));
}

Bytes Section::bytes(std::string_view key) {
  return get(key) ? bytes(key, Bytes()) : Bytes(default_quantity(asked(key)));
}

Bytes Section::bytes(std::string_view key, Bytes otherwise) {
  return reader_.bytes(asked(key).key, otherwise);
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

std::vector<JsonNode> Section::items_at(std::string_view key, const JsonNode& node,
                                        std::string_view wrong, std::string_view items) {
  const ContractType& list = *form_of(asked(key).type, Form::List);
  const std::size_t size = node.value->items.size();
  const bool fits =
      static_cast<double>(size) >= list.least && static_cast<double>(size) <= list.most;
  std::vector<JsonNode> nodes;
  if (node.value->kind == JsonValue::Kind::Array && fits) {
    for (std::size_t i = 0; i < size; ++i) nodes.push_back(node.item(i));
    return nodes;
  }
  report(diagnostics(), node,
         std::string(wrong) + "; expected " + list_range(list) + std::string(items));
  return nodes;
}

void Section::refuse_unused(const std::string& kind, const std::string& noun) {
  const bool vowel = std::string("aeiou").find(kind[0]) != std::string::npos;
  const std::string nothing = kind.empty()
                                  ? "without a \"kind\""
                                  : "for " + std::string(vowel ? "an " : "a ") + kind + " " + noun;
  for (const ContractKey& row : object_->keys) {
    const std::optional<JsonNode> node = get(row.key);
    if (!node || row.with.empty() || std::count(row.with.begin(), row.with.end(), kind)) continue;
    report(diagnostics(), *node,
           "means nothing " + nothing + "; expected only with " + join_choices(row.with));
  }
}

void Section::finish() {
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    CHECK(asked_[i], "the loader never asks for " + object_->name + "." + object_->keys[i].key);
  }
  reader_.finish();
}

}  // namespace interlock
