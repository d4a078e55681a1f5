// Reads "search". Objects in its lists are read where scenarios are made of it.
// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "scenarios/contract/contract.h"
#include "scenarios/contract/limits.h"
#include "scenarios/load/loader.h"
#include "scenarios/search/search_request.h"

namespace interlock {

namespace {

/// Returns the values of a list; a value that is no list is its own.
std::vector<JsonNode> items_of(const JsonNode& node) {
  if (node.value->kind != JsonValue::Kind::Array) return {node};
  std::vector<JsonNode> items;
  for (std::size_t i = 0; i < node.value->items.size(); ++i) items.push_back(node.item(i));
  return items;
}

std::vector<int> counts_of(Section& section, const char* key) {
  const auto node = section.get(key);
  if (!node) return {};
  std::vector<int> counts;
  for (const JsonNode& item : items_of(*node)) {
    const auto count = section.count_at(key, item);
    if (count) counts.push_back(*count);
  }
  if (items_of(*node).empty()) {
    report(section.diagnostics(), *node, "an empty list leaves no plan; expected some numbers");
  }
  return counts;
}

/// Reports a value that is no list of counts as `type` has them.
void check_counts(const ContractType& type, const JsonNode& node, Diagnostics& diagnostics) {
  if (node.value->kind != JsonValue::Kind::Array || node.value->items.empty()) {
    report(
        diagnostics, node,
        "expected a name, or a list in the list, such as [[2, 2]], got " + described(*node.value));
    return;
  }
  for (const JsonNode& count : items_of(node)) {
    read_count(count, static_cast<int>(type.least), 1'000'000, diagnostics);
  }
}

/// Reports an item of the list of `key` that has none of the forms of its row.
void check_item(Section& section, const char* key, const JsonNode& item) {
  using Form = ContractType::Form;
  using Kind = JsonValue::Kind;
  Diagnostics& diagnostics = section.diagnostics();
  const ContractType& type = contract_key(contract_object("search"), key).type;
  const ContractType* names = form_of(type, Form::Names);
  const ContractType* object = form_of(type, Form::Object);
  const ContractType* list = form_of(type, Form::List);
  const bool of_counts = list && list->of.front().form == Form::Whole;
  if (form_of(type, Form::Whole)) {
    section.count_at(key, item);
  } else if (form_of(type, Form::Boolean)) {
    read_boolean(item, diagnostics);
  } else if (object && (!names || item.value->kind != Kind::String)) {
    if (item.value->kind == Kind::Object) return;
    report(diagnostics, item,
           (names ? "expected a name or an object of " : "expected an object of ") +
               in_quotes(object->object) + ", got " + described(*item.value));
  } else if (of_counts && item.value->kind != Kind::String) {
    check_counts(list->of.front(), item, diagnostics);
  } else if (names) {
    read_choice(item, names->names, diagnostics);
  }
}

std::vector<JsonValue> values_of(Section& section, const char* key) {
  const auto node = section.get(key);
  if (!node) return {};
  std::vector<JsonValue> values;
  for (const JsonNode& item : items_of(*node)) {
    check_item(section, key, item);
    values.push_back(*item.value);
  }
  if (values.empty()) {
    report(section.diagnostics(), *node, "an empty list leaves no plan; expected some values");
  }
  return values;
}

/// Reads a share of each device, or a size.
MemoryReserve read_reserve(const JsonNode& node, Diagnostics& diagnostics) {
  if (node.value->kind == JsonValue::Kind::Number) {
    const double share = node.value->number;
    if (share >= 0 && share <= kMostReserve) return {.share = share};
    report(diagnostics, node,
           "out of range; expected a share of the device from 0 to " + format_number(kMostReserve) +
               ", or a size such as \"6 GiB\", got " + described(*node.value));
    return {};
  }
  return {.process = read_bytes(node, diagnostics).value_or(Bytes(0))};
}

PlanLimits read_limits(const JsonNode& node, Diagnostics& diagnostics) {
  PlanLimits limits;
  Section section(contract_object("search.limits"), node, diagnostics);
  if (const auto memory = section.get("memory")) limits.memory = read_bytes(*memory, diagnostics);
  if (const auto reserve = section.get("reserve")) {
    limits.reserve = read_reserve(*reserve, diagnostics);
    if (limits.memory) {
      report(diagnostics, *reserve, "\"memory\" is what tensors may take; expected one of both");
    }
  }
  limits.time = section.written_duration("time");
  limits.cost = section.written_number("cost");
  if (const auto power = section.get("power")) limits.power = read_watts(*power, diagnostics);
  section.finish();
  return limits;
}

}  // namespace

const char* name_of(Aim aim) {
  return contract_names("search", "minimize")[static_cast<std::size_t>(aim)].c_str();
}

SearchRequest read_search(const JsonNode& node, Diagnostics& diagnostics) {
  SearchRequest request;
  Section section(contract_object("search"), node, diagnostics);
  request.aim = static_cast<Aim>(section.choice("minimize"));
  if (const auto limits = section.get("limits")) request.limits = read_limits(*limits, diagnostics);
  request.worth = section.number("worth");
  request.devices = counts_of(section, "devices");
  request.tensor = counts_of(section, "tensor");
  request.pipeline = counts_of(section, "pipeline");
  request.data = counts_of(section, "data");
  request.context = counts_of(section, "context");
  request.expert = counts_of(section, "expert");
  request.expert_tensor = counts_of(section, "expert_tensor");
  request.zero_stages = counts_of(section, "zero_stage");
  request.micro_batch_sizes = counts_of(section, "micro_batch_size");
  request.chunks = counts_of(section, "chunks");
  request.strategies = values_of(section, "strategy");
  request.schedules = values_of(section, "schedule");
  request.recompute = values_of(section, "recompute");
  request.partitions = values_of(section, "partition");
  request.context_layouts = values_of(section, "context_layout");
  if (section.get("machine_order")) section.choice("machine_order");
  for (const SearchOption& option : kSearchOptions) {
    const std::vector<JsonValue> values = values_of(section, option.key);
    if (!values.empty()) request.options[option.path] = values;
  }
  section.finish();
  return request;
}

void check_search(const JsonNode& search, Diagnostics& diagnostics) {
  read_search(search, diagnostics);
}

}  // namespace interlock
