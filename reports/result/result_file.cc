// Reads results strictly where figures use them; keys that they do not know may be there.
// SPDX-License-Identifier: Apache-2.0
#include "reports/result/result_file.h"

#include <cmath>
#include <limits>

#include "base/text.h"

namespace interlock {
namespace {

using Kind = JsonValue::Kind;

constexpr double kMost = std::numeric_limits<double>::max();
constexpr const char* kResult = "interlock-result/1";
constexpr const char* kTraining = "interlock-training/1";

double number_of(ObjectReader& reader, const char* key, double most = kMost) {
  const auto node = reader.require(key, "a number");
  return node ? read_number(*node, 0, most, reader.diagnostics()).value_or(0) : 0;
}

std::optional<double> number_or_null(ObjectReader& reader, const char* key) {
  const auto node = reader.require(key, "a number, or null");
  if (!node || node->value->kind == Kind::Null) return std::nullopt;
  return read_number(*node, 0, kMost, reader.diagnostics());
}

std::string text_of(ObjectReader& reader, const char* key) {
  const auto node = reader.require(key, "a text");
  return node ? read_text(*node, reader.diagnostics()).value_or("") : "";
}

/// The elements of an array, or nothing after a diagnostic.
std::vector<JsonNode> items_of(ObjectReader& reader, const char* key) {
  std::vector<JsonNode> items;
  const auto node = reader.require(key, "an array");
  if (node && node->value->kind != Kind::Array) {
    report(reader.diagnostics(), *node, "expected an array, got " + described(*node->value));
  } else if (node) {
    for (std::size_t i = 0; i < node->value->items.size(); ++i) items.push_back(node->item(i));
  }
  return items;
}

/// Nothing where the result has null, or was written before there were causes.
std::optional<Bubbles> read_bubbles(ObjectReader& reader) {
  const auto node = reader.get("bubble_s");
  if (!node || node->value->kind == Kind::Null) return std::nullopt;
  ObjectReader causes(*node, reader.diagnostics());
  Bubbles bubbles{};
  for (int i = 0; i < kBubbleCauses; ++i) {
    const auto cause = static_cast<BubbleCause>(i);
    // Results of older programs name no exchanges.
    if (cause == BubbleCause::Exchange && !causes.get(name_of(cause))) continue;
    bubbles[static_cast<std::size_t>(i)] = number_of(causes, name_of(cause));
  }
  return bubbles;
}

ReadDevice read_device(const JsonNode& node, Diagnostics& diagnostics) {
  ObjectReader reader(node, diagnostics);
  ReadDevice device;
  device.device = static_cast<int>(number_of(reader, "device", 1e9));
  device.busy = number_of(reader, "busy");
  device.useful = number_of(reader, "useful");
  device.peak_memory = number_of(reader, "peak_memory_bytes");
  if (reader.get("peak_stash_bytes")) device.peak_stash = number_of(reader, "peak_stash_bytes");
  if (const auto memory = reader.require("memory_bytes", "an object")) {
    ObjectReader classes(*memory, diagnostics);
    for (int i = 0; i < kMemoryClasses; ++i) {
      device.memory[i] = number_of(classes, name_of(static_cast<MemoryClass>(i)));
    }
  }
  if (const auto shares = reader.require("time_shares", "an object")) {
    ObjectReader uses(*shares, diagnostics);
    for (int i = 0; i < kTimeUses; ++i) {
      device.time[i] = number_of(uses, name_of(static_cast<TimeUse>(i)));
    }
  }
  device.bubbles = read_bubbles(reader);
  return device;
}

/// `value` as if it stood where the program runs: files that it names are written that way.
void move_here(JsonValue& value, const std::shared_ptr<const std::string>& file) {
  value.file = file;
  for (JsonValue& item : value.items) move_here(item, file);
  for (JsonMember& member : value.members) move_here(member.second, file);
}

std::vector<SweptValue> read_swept(const JsonNode& node, Diagnostics& diagnostics) {
  std::vector<SweptValue> swept;
  if (node.value->kind != Kind::Object) {
    report(diagnostics, node, "expected an object, got " + described(*node.value));
    return swept;
  }
  for (const auto& [path, value] : node.value->members) {
    const bool number = value.kind == Kind::Number;
    swept.push_back({path, number ? described(value) : value.text, std::nullopt});
    if (number) swept.back().number = value.number;
  }
  return swept;
}

/// The number at `path` inside `value`, where all of it is there.
std::optional<double> number_at(const JsonValue& value, std::initializer_list<const char*> path) {
  const JsonValue* at = &value;
  for (const char* key : path) {
    at = at->kind == Kind::Object ? at->find(key) : nullptr;
    if (at == nullptr) return std::nullopt;
  }
  return at->kind == Kind::Number ? std::optional(at->number) : std::nullopt;
}

void read_economics(const JsonValue& value, ReadResult& result) {
  result.range_low = number_at(value, {"range", "low_s"});
  result.range_high = number_at(value, {"range", "high_s"});
  result.energy = number_at(value, {"energy_j"});
  result.power = number_at(value, {"energy", "mean_power_w"});
  result.cost = number_at(value, {"cost", "step"});
  result.goal_time = number_at(value, {"goal", "time_s"});
  result.goal_energy = number_at(value, {"goal", "energy_j"});
  result.goal_cost = number_at(value, {"goal", "cost", "amount"});
  if (result.cost) result.currency = value.find("cost")->find("currency")->text;
}

/// What only some results have, and files of earlier versions lack.
void read_extras(const JsonValue& value, ReadResult& result) {
  result.mfu = number_at(value, {"utilisation", "mfu"});
  result.exposed = number_at(value, {"exposed_communication_s"}).value_or(0);
  result.run_time = number_at(value, {"run", "wall_s", "mean"});
  result.share_of_best = number_at(value, {"swarm", "share_of_best", "mean"});
  const JsonValue* links = value.find("links");
  for (std::size_t i = 0; links && i < links->items.size(); ++i) {
    const double stands_for = number_at(links->items[i], {"stands_for"}).value_or(1);
    result.traffic += number_at(links->items[i], {"bytes"}).value_or(0) * stands_for;
  }
  const JsonValue* swarm = value.find("swarm");
  const JsonValue* peers =
      swarm && swarm->kind == Kind::Object ? swarm->find("peer_busy") : nullptr;
  if (peers && !peers->items.empty()) {
    double sum = 0;
    for (const JsonValue& peer : peers->items) sum += peer.number;
    result.peers_at_work = sum;
  }
  read_economics(value, result);
  result.quality = number_at(value, {"scenario", "quality", "value"});
  if (result.quality) {
    const JsonValue* words = value.find("scenario")->find("quality")->find("measure");
    if (words) result.quality_measure = words->text;
  }
}

ReadResult read_result(const JsonNode& node, Diagnostics& diagnostics) {
  ObjectReader reader(node, diagnostics);
  ReadResult result;
  result.file = node.value->file ? *node.value->file : "";
  result.name = text_of(reader, "name");
  result.devices = static_cast<int>(number_of(reader, "devices_total", 1e9));
  result.step_time = number_of(reader, "step_time_s");
  result.tokens_per_s = number_or_null(reader, "tokens_per_s");
  result.samples_per_s = number_or_null(reader, "samples_per_s");
  result.memory_capacity = number_or_null(reader, "memory_capacity_bytes");
  if (const auto shares = reader.require("utilisation", "an object")) {
    ObjectReader means(*shares, diagnostics);
    result.busy = number_of(means, "busy");
    result.useful = number_of(means, "useful");
  }
  if (node.value->kind == Kind::Object) read_extras(*node.value, result);
  if (const auto sweep = reader.get("sweep")) result.swept = read_swept(*sweep, diagnostics);
  for (const JsonNode& device : items_of(reader, "devices")) {
    result.simulated.push_back(read_device(device, diagnostics));
  }
  if (result.simulated.empty() && diagnostics.empty()) {
    report(diagnostics, node.child("devices"), "has no device; expected at least one");
  }
  const auto scenario = reader.get("scenario");
  if (scenario && scenario->value->kind == Kind::Object) {
    JsonValue document = *scenario->value;
    const std::size_t slash = result.file.rfind('/');
    move_here(document, std::make_shared<const std::string>(slash == std::string::npos
                                                                ? result.file
                                                                : result.file.substr(slash + 1)));
    result.scenario = std::make_shared<const JsonValue>(std::move(document));
  }
  return result;
}

std::vector<double> numbers_of(ObjectReader& reader, const char* key) {
  std::vector<double> numbers;
  for (const JsonNode& item : items_of(reader, key)) {
    const bool null = item.value->kind == Kind::Null;  // a loss that is no number
    const auto value =
        null ? std::nan("") : read_number(item, -kMost, kMost, reader.diagnostics()).value_or(0);
    numbers.push_back(value);
  }
  return numbers;
}

TrainingCurve read_curve(const JsonNode& node, Diagnostics& diagnostics) {
  ObjectReader reader(node, diagnostics);
  TrainingCurve curve;
  curve.name = text_of(reader, "name");
  curve.losses = numbers_of(reader, "loss");
  for (const double end : numbers_of(reader, "measured_end_s")) curve.ends.emplace_back(end);
  curve.simulated_step = Seconds(number_of(reader, "simulated_step_time_s"));
  curve.measured_step = Seconds(number_or_null(reader, "measured_step_time_s").value_or(0));
  if (!curve.ends.empty() && curve.ends.size() != curve.losses.size()) {
    report(diagnostics, node.child("measured_end_s"),
           "expected as many times as losses, " + std::to_string(curve.losses.size()) + ", got " +
               std::to_string(curve.ends.size()));
  }
  return curve;
}

/// The version of what is at `node`; empty after a diagnostic.
std::string format_of(const JsonNode& node, Diagnostics& diagnostics) {
  const std::string known = in_quotes(kResult) + " of interlock simulate --json or " +
                            in_quotes(kTraining) + " of interlock train --json";
  const JsonValue* format = node.value->kind == Kind::Object ? node.value->find("format") : nullptr;
  if (format == nullptr || format->kind != Kind::String) {
    report(diagnostics, node, "is no result: it has no \"format\"; expected " + known);
    return "";
  }
  if (format->text == kResult || format->text == kTraining) return format->text;
  report(diagnostics, node.child("format"),
         "another version than this program reads; expected " + known + ", got " +
             in_quotes(format->text));
  return "";
}

void read_one(const JsonNode& node, ResultFiles& files, Diagnostics& diagnostics) {
  const std::string format = format_of(node, diagnostics);
  if (format == kResult) files.results.push_back(read_result(node, diagnostics));
  if (format == kTraining) files.curves.push_back(read_curve(node, diagnostics));
}

}  // namespace

ResultFiles read_result_files(const std::vector<JsonValue>& documents) {
  ResultFiles files;
  Diagnostics diagnostics;
  for (const JsonValue& document : documents) {
    const JsonNode root = {&document, ""};
    if (document.kind != Kind::Array) {
      read_one(root, files, diagnostics);
      continue;
    }
    if (document.items.empty()) report(diagnostics, root, "has no result; expected at least one");
    for (std::size_t i = 0; i < document.items.size(); ++i) {
      read_one(root.item(i), files, diagnostics);
    }
  }
  diagnostics.throw_if_any();
  if (!files.results.empty() && !files.curves.empty()) {
    throw Error(
        "results of interlock simulate and curves of interlock train are not drawn "
        "together; expected files of one kind");
  }
  return files;
}

}  // namespace interlock
