// Reads the head of a measurement file; measured_rows.cc reads its rows.
// SPDX-License-Identifier: Apache-2.0
#include "validate/published/measurement_file.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "validate/published/measured_rows.h"

namespace interlock {
namespace {

constexpr const char* kFolder = "validate/published/measurements";

AccuracyTarget read_target(const JsonNode& node, Diagnostics& diagnostics) {
  ObjectReader reader(node, diagnostics);
  const auto share = [&](const char* key, double most) -> std::optional<double> {
    const auto value = reader.get(key);
    return value ? read_number(*value, 0, most, diagnostics) : std::nullopt;
  };
  constexpr double kMostError = 10;
  AccuracyTarget target{share("mape", kMostError), share("max", kMostError), share("spearman", 1),
                        share("orders", 1)};
  reader.finish();
  return target;
}

void read_targets(const JsonNode& node, MeasuredTable& table, Diagnostics& diagnostics) {
  ObjectReader reader(node, diagnostics);
  for (int i = 0; i < kMeasurands; ++i) {
    const auto target = reader.get(measurand_names()[i]);
    if (target) table.targets[static_cast<Measurand>(i)] = read_target(*target, diagnostics);
  }
  reader.finish();
}

MeasuredTable read_table(const JsonNode& node, Diagnostics& diagnostics) {
  ObjectReader reader(node, diagnostics);
  MeasuredTable table{.name = reader.text("name", ""),
                      .memory_stated = reader.boolean("memory_stated", true)};
  if (table.name.empty()) reader.require("name", "a name");
  if (const auto target = reader.get("target")) read_targets(*target, table, diagnostics);
  read_rows(reader, table);
  reader.finish();
  return table;
}

std::vector<std::string> read_texts(const JsonNode& node, Diagnostics& diagnostics) {
  std::vector<std::string> texts;
  if (node.value->kind != JsonValue::Kind::Array) {
    report(diagnostics, node, "expected a list of texts");
    return texts;
  }
  for (std::size_t i = 0; i < node.value->items.size(); ++i) {
    texts.push_back(read_text(node.item(i), diagnostics).value_or(""));
  }
  return texts;
}

void read_source(const JsonNode& node, MeasurementFile& file, Diagnostics& diagnostics) {
  ObjectReader reader(node, diagnostics);
  reader.require("paper", "who published it, and where");
  file.paper = reader.text("paper", "");
  file.place = reader.text("place", "");
  file.address = reader.text("address", "");
  file.licence = reader.text("licence", "");
  reader.finish();
}

void read_tables(const JsonNode& node, MeasurementFile& file, Diagnostics& diagnostics) {
  if (node.value->kind != JsonValue::Kind::Array || node.value->items.empty()) {
    report(diagnostics, node, "expected a list of tables");
    return;
  }
  for (std::size_t i = 0; i < node.value->items.size(); ++i) {
    file.tables.push_back(read_table(node.item(i), diagnostics));
  }
}

}  // namespace

const std::vector<std::string>& measurand_names() {
  static const std::vector<std::string> names = {"step_time_s",
                                                 "step_difference_s",
                                                 "samples_per_s",
                                                 "tokens_per_s",
                                                 "tflops_per_device",
                                                 "speed_up",
                                                 "forward_s",
                                                 "backward_s",
                                                 "mean_forward_s",
                                                 "mean_backward_input_s",
                                                 "mean_backward_weight_s",
                                                 "peak_memory_bytes",
                                                 "used_memory_bytes",
                                                 "peak_stash_bytes",
                                                 "state_memory_bytes",
                                                 "last_peak_bytes",
                                                 "last_held_bytes",
                                                 "stash_ratio"};
  return names;
}

bool is_memory(Measurand what) { return what >= Measurand::PeakMemory; }

std::string fitted_on(const MeasuredRow& row, Measurand what) {
  return is_memory(what) ? "" : row.fitted;
}

bool needs_base(Measurand what) {
  return what == Measurand::StepDifference || what == Measurand::SpeedUp ||
         what == Measurand::StashRatio;
}

MeasurementFile read_measurements(const std::string& path) {
  return read_measurements(read_json_file(path), std::filesystem::path(path).stem().string());
}

MeasurementFile read_measurements(const JsonValue& document, const std::string& name) {
  MeasurementFile file{.name = name};
  Diagnostics diagnostics;
  ObjectReader reader({&document, ""}, diagnostics);
  reader.require("kind", "\"measurements\"");
  reader.choice("kind", {"measurements"}, 0);
  file.title = reader.text("title", file.name);
  if (const auto source = reader.require("source", "where it was published")) {
    read_source(*source, file, diagnostics);
  }
  if (const auto notes = reader.get("notes")) file.notes = read_texts(*notes, diagnostics);
  if (const auto tables = reader.require("tables", "a list of tables")) {
    read_tables(*tables, file, diagnostics);
  }
  reader.finish();
  diagnostics.throw_if_any();
  return file;
}

std::vector<std::string> published_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder(kFolder))) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string published_path(const std::string& name) {
  return data_folder(kFolder) + "/" + name + ".json";
}

}  // namespace interlock
