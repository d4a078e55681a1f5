// Reads results strictly where figures use them; keys that they do not know may be there.
// SPDX-License-Identifier: Apache-2.0
#include "reports/result/result_file.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "reports/result/all_metrics.h"

namespace interlock {
namespace {

using Kind = JsonValue::Kind;

constexpr double kMost = std::numeric_limits<double>::max();
constexpr double kMostOfMetric = 1e30;  // seconds, bytes, flops; ratios of two are still numbers
constexpr const char* kResult = "interlock-result/1";
constexpr const char* kTraining = "interlock-training/1";

double number_of(ObjectReader& reader, const char* key, double most = kMostOfMetric) {
  const auto node = reader.require(key, "a number");
  return node ? read_number(*node, 0, most, reader.diagnostics()).value_or(0) : 0;
}

std::string text_of(ObjectReader& reader, const char* key) {
  const auto node = reader.require(key, "a text");
  return node ? read_text(*node, reader.diagnostics()).value_or("") : "";
}

/// Returns the elements of an array, or nothing after a diagnostic.
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

/// Reads the bubbles; nothing where the result has null, or was written before there were causes.
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

/// Returns the node at `pointer` ("/utilisation/busy") below `node`, where all of the way is there.
std::optional<JsonNode> node_at(JsonNode node, std::string_view pointer) {
  while (!pointer.empty()) {
    const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
    const std::string key(pointer.substr(1, end - 1));
    const bool object = node.value->kind == Kind::Object;
    if (!object || node.value->find(key) == nullptr) return std::nullopt;
    node = node.child(key);
    pointer.remove_prefix(end);
  }
  return node;
}

std::optional<double> number_at(const JsonNode& node, std::string_view pointer) {
  const auto found = node_at(node, pointer);
  const bool number = found && found->value->kind == Kind::Number;
  return number ? std::optional(found->value->number) : std::nullopt;
}

ReadDevice read_device(const JsonNode& node, Diagnostics& diagnostics) {
  ObjectReader reader(node, diagnostics);
  ReadDevice device;
  DeviceMetrics& metrics = device.metrics;
  device.device = static_cast<int>(number_of(reader, "device", 1e9));
  metrics.busy = number_of(reader, "busy");
  metrics.useful = number_of(reader, "useful");
  metrics.peak_memory = Bytes(number_of(reader, "peak_memory_bytes"));
  if (reader.get("peak_stash_bytes")) {
    metrics.peak_stash = Bytes(number_of(reader, "peak_stash_bytes"));
  }
  if (const auto used = number_at(node, "/used_memory_bytes")) metrics.used_memory = Bytes(*used);
  if (const auto memory = reader.require("memory_bytes", "an object")) {
    ObjectReader classes(*memory, diagnostics);
    for (int i = 0; i < kMemoryClasses; ++i) {
      metrics.memory[i] = Bytes(number_of(classes, name_of(static_cast<MemoryClass>(i))));
    }
  }
  if (const auto shares = reader.require("time_shares", "an object")) {
    ObjectReader uses(*shares, diagnostics);
    for (int i = 0; i < kTimeUses; ++i) {
      metrics.time[i] = number_of(uses, name_of(static_cast<TimeUse>(i)));
    }
  }
  device.bubbles = read_bubbles(reader);
  return device;
}

/// Makes `value` stand where the program runs: files that it names are written that way.
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

std::string words_at(const JsonNode& node, std::string_view pointer) {
  const auto found = node_at(node, pointer);
  return found && found->value->kind == Kind::String ? found->value->text : "";
}

/// Tells whether a metric is null where it is not known.
bool may_be_null(const MetricRow& row) {
  return std::holds_alternative<MetricFormula>(row.field) ||
         std::holds_alternative<std::optional<double> Metrics::*>(row.field);
}

/// Reads a metric that every result has; reports one that is missing or no number.
void read_always(const JsonNode& node, const MetricRow& row, ReadResult& result,
                 Diagnostics& diagnostics) {
  const auto found = node_at(node, row.pointer);
  const std::string expected = may_be_null(row) ? "a number, or null" : "a number";
  if (!found) {
    report(diagnostics, node,
           "missing key " + in_quotes(row.pointer + 1) + "; expected " + expected);
  } else if (found->value->kind != Kind::Null || !may_be_null(row)) {
    const auto value = read_number(*found, 0, kMostOfMetric, diagnostics);
    if (value) result.values[row.key] = *value;
    if (value == 0.0 && std::string_view(row.key) == "step_time_s") {
      report(diagnostics, *found, "expected a time above 0, got 0");
    }
  }
}

void read_metrics(const JsonNode& node, ReadResult& result, Diagnostics& diagnostics) {
  for (const MetricRow& row : all_metrics()) {
    const bool word = row.kind == MetricKind::Words || row.kind == MetricKind::Truth;
    if (row.pointer == nullptr || word) continue;
    if ((row.traits & kAlways) != 0) {
      read_always(node, row, result, diagnostics);
    } else if (const auto value = number_at(node, row.pointer)) {
      result.values[row.key] = *value;
    }
  }
  result.currency = words_at(node, "/cost/currency");
  result.quality_measure = words_at(node, "/scenario/quality/measure");
}

/// Returns the micro-batches of all replicas; nothing of a workload.
std::optional<double> micro_batches_per_step(const JsonNode& node, const ReadResult& result) {
  const auto micro_batches = result.value("micro_batches");
  if (!micro_batches || words_at(node, "/schedule").empty()) return std::nullopt;
  const auto shares = node_at(node, "/replica_micro_batches");
  if (!shares || shares->value->items.empty()) {
    return *micro_batches * number_at(node, "/parallel/data").value_or(1);
  }
  double all = 0;
  for (const JsonValue& share : shares->value->items) all += share.number;
  return all;
}

/// Adds the metrics that follow from arrays of the result, by the formulas of the table.
void add_totals(const JsonNode& node, ReadResult& result) {
  Metrics metrics;
  metrics.step_time = Seconds(result.value("step_time_s").value_or(0));
  for (const ReadDevice& device : result.simulated) metrics.devices.push_back(device.metrics);
  const auto links = node_at(node, "/links");
  for (std::size_t i = 0; links && i < links->value->items.size(); ++i) {
    const double alike = number_at(links->item(i), "/stands_for").value_or(1);
    metrics.links.push_back(
        {.bytes = Bytes(number_at(links->item(i), "/bytes").value_or(0) * alike)});
  }
  const auto staleness = node_at(node, "/staleness");
  if (staleness && staleness->value->kind == Kind::Object) {
    for (const JsonMember& member : staleness->value->members) {
      ++metrics.staleness[static_cast<int>(std::strtol(member.first.c_str(), nullptr, 10))];
    }
  }
  metrics.micro_batches_per_step = micro_batches_per_step(node, result);
  for (const MetricRow& row : step_metrics()) {
    const auto value = row.pointer == nullptr ? number_of(row, metrics) : std::nullopt;
    if (value) result.values[row.key] = *value;
  }
  const auto peers = node_at(node, "/swarm/peer_busy");
  if (!peers || peers->value->items.empty()) return;
  double& at_work = result.values["peers_at_work"] = 0;
  for (const JsonValue& peer : peers->value->items) at_work += peer.number;
}

ReadResult read_result(const JsonNode& node, Diagnostics& diagnostics) {
  ObjectReader reader(node, diagnostics);
  ReadResult result;
  result.file = node.value->file ? *node.value->file : "";
  result.name = text_of(reader, "name");
  result.strategy = words_at(node, "/strategy");
  result.devices = static_cast<int>(number_of(reader, "devices_total", 1e9));
  result.fits = reader.boolean("fits_in_memory", true);
  read_metrics(node, result, diagnostics);
  if (const auto sweep = reader.get("sweep")) result.swept = read_swept(*sweep, diagnostics);
  for (const JsonNode& device : items_of(reader, "devices")) {
    result.simulated.push_back(read_device(device, diagnostics));
  }
  if (result.simulated.empty() && diagnostics.empty()) {
    report(diagnostics, node.child("devices"), "has no device; expected at least one");
  }
  add_totals(node, result);
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
  const auto measured = reader.require("measured_step_time_s", "a number, or null");
  if (measured && measured->value->kind != Kind::Null) {
    curve.measured_step = Seconds(read_number(*measured, 0, kMost, diagnostics).value_or(0));
  }
  if (!curve.ends.empty() && curve.ends.size() != curve.losses.size()) {
    report(diagnostics, node.child("measured_end_s"),
           "expected as many times as losses, " + std::to_string(curve.losses.size()) + ", got " +
               std::to_string(curve.ends.size()));
  }
  return curve;
}

/// Returns the version of the result at `node`; empty after a diagnostic.
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

std::optional<double> ReadResult::value(std::string_view key) const {
  const auto found = values.find(key);
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

double ReadResult::known(std::string_view key) const {
  const auto found = values.find(key);
  CHECK(found != values.end(), "a result that was read has what every result has");
  return found->second;
}

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
