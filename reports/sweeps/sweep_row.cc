// Runs a scenario of a sweep and takes its result apart into columns.
// SPDX-License-Identifier: Apache-2.0
#include "reports/sweeps/sweep_row.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/checksum.h"
#include "base/error.h"
#include "base/text.h"
#include "reports/result/result_json.h"
#include "reports/result/scenario_json.h"
#include "reports/words/encode.h"
#include "scenarios/simulate/run_scenario.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

/// A figure of the result, and where it stands there.
struct ResultColumn {
  const char *name, *pointer, *meaning;
};

constexpr ResultColumn kResultColumns[] = {
    {"step_time_s", "/step_time_s", "a step"},
    {"samples_per_s", "/samples_per_s", "of all devices"},
    {"tokens_per_s", "/tokens_per_s", "of all devices"},
    {"samples_per_s_per_device", "/samples_per_s_per_device", ""},
    {"tokens_per_s_per_device", "/tokens_per_s_per_device", ""},
    {"busy", "/utilisation/busy", "share of time, mean over devices"},
    {"useful", "/utilisation/useful", "likewise, of the main network's own passes"},
    {"mfu", "/utilisation/mfu", "model flops utilisation"},
    {"hfu", "/utilisation/hfu", "with recompute"},
    {"bubble_fraction", "/bubble_fraction", "1 - busy"},
    {"exposed_communication_s", "/exposed_communication_s", "of a step, waiting for messages"},
    {"fits_in_memory", "/fits_in_memory", "1 or 0"},
    {"memory_capacity_bytes", "/memory_capacity_bytes", "of a device"},
    {"host_peak_bytes", "/host_peak_bytes", "of the host that keeps most"},
    {"energy_j", "/energy_j", "of a step"},
    {"mean_power_w", "/energy/mean_power_w", "of all devices"},
    {"cost", "/cost/step", "of a step, in `currency`"},
    {"cost_per_million_tokens", "/cost/million_tokens", ""},
    {"cost_per_million_samples", "/cost/million_samples", ""},
    {"currency", "/cost/currency", ""},
    {"goal_time_s", "/goal/time_s", "to the scenario's goal, or of its run"},
    {"goal_energy_j", "/goal/energy_j", ""},
    {"goal_cost", "/goal/cost/amount", ""},
    {"range_low_s", "/range/low_s", "of the step time"},
    {"range_high_s", "/range/high_s", ""},
    {"model", "/model", "name"},
    {"cluster", "/cluster", "name"},
    {"strategy", "/strategy", ""},
    {"schedule", "/schedule", ""},
    {"devices_total", "/devices_total", "of the layout"},
    {"devices_simulated", "/devices_simulated", "others are like these"},
    {"micro_batches", "/micro_batches", "of a step and replica"},
    {"makespan_s", "/makespan_s", "of the whole simulation"},
    {"fill_latency_s", "/fill_latency_s", ""},
    {"steady", "/steady", "1 or 0"},
    {"fill_steps", "/fill_steps", "before those that are measured"},
    {"measured_steps", "/measured_steps", ""},
    {"limiting_device", "/limiting_device", "the first of the busiest"},
    {"engine", "/engine", ""},
    {"tasks", "/tasks", "of the simulation"},
    {"skipped_tasks", "/skipped_tasks", "of these, not simulated"},
};

SqlValue cell_of(const Json& value) {
  if (value.is_boolean()) return std::int64_t{value.get<bool>()};
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  return {};
}

std::string value_text(const JsonValue& value) {
  const Json json = value_json(value);
  if (!json.is_string()) return json.dump();
  // A text needs quotes only where it could be taken for JSON.
  const auto text = json.get<std::string>();
  return Json::accept(text) ? json.dump() : text;
}

/// A word as a shell takes it.
std::string shell_word(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) ||
           std::string_view("_-./=,:+@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// What runs one scenario again.
std::string command_of(const SweepSource& source, const std::vector<SweepSetting>& settings) {
  std::string command = "interlock simulate " + shell_word(source.file);
  const auto add = [&](const std::string& text) { command += " --set " + shell_word(text); };
  for (const std::string& text : source.overrides) add(text);
  if (!settings.empty()) add("sweep=null");
  for (const SweepSetting& setting : settings) {
    add(setting.path + "=" + value_text(setting.value));
  }
  return command;
}

SqlValue setting_cell(const std::string& path, const std::vector<SweepSetting>& settings) {
  for (const SweepSetting& setting : settings) {
    if (setting.path != path) continue;
    const Json json = value_json(setting.value);
    return json.is_structured() ? SqlValue(json.dump()) : cell_of(json);
  }
  return {};
}

/// Cells by the name of their column.
class RowWriter {
 public:
  RowWriter(const SweepPlan& plan, std::size_t id)
      : columns_(sweep_columns(plan.paths())),
        row_{id, std::vector<SqlValue>(columns_.size()), ""} {}
  void set(const std::string& column, SqlValue cell) {
    row_.cells[place_of(columns_, column)] = std::move(cell);
  }
  SweepRow& row() { return row_; }

 private:
  std::vector<SweepColumn> columns_;
  SweepRow row_;
};

void set_identity(const SweepPlan& plan, const SweepSource& source, RowWriter& writer) {
  const std::vector<SweepSetting> settings = plan.settings(writer.row().id - 1);
  for (const std::string& path : plan.paths()) {
    writer.set(column_of(path), setting_cell(path, settings));
  }
  writer.set("program_version", std::string(INTERLOCK_VERSION));
  writer.set("command", command_of(source, settings));
}

Bytes largest(const Metrics& metrics, Bytes DeviceMetrics::*bytes) {
  Bytes most(0);
  for (const DeviceMetrics& device : metrics.devices) most = std::max(most, device.*bytes);
  return most;
}

/// Why a plan that was simulated is none; empty: it is one.
std::string misfit(const Metrics& metrics) {
  if (metrics.fits_in_memory) return "";
  const Bytes peak = largest(metrics, &DeviceMetrics::peak_memory);
  if (metrics.memory_capacity > Bytes(0) && peak > metrics.memory_capacity) {
    return "does not fit: " + format(peak) + " of " + format(metrics.memory_capacity);
  }
  return "does not fit: the host needs " + format(metrics.host_memory) + " of " +
         format(metrics.host_capacity);
}

void set_result(const ScenarioResult& result, RowWriter& writer) {
  const Metrics& metrics = result.measurement.metrics;
  Json document = result_document(result);
  for (const ResultColumn& column : kResultColumns) {
    const Json::json_pointer pointer(column.pointer);
    if (document.contains(pointer)) writer.set(column.name, cell_of(document[pointer]));
  }
  const auto bytes = [](Bytes value) { return static_cast<std::int64_t>(value.value()); };
  Bytes traffic(0);
  for (const LinkMetrics& link : metrics.links) traffic += link.bytes * link.stands_for;
  writer.set("peak_memory_bytes", bytes(largest(metrics, &DeviceMetrics::peak_memory)));
  writer.set("peak_stash_bytes", bytes(largest(metrics, &DeviceMetrics::peak_stash)));
  writer.set("traffic_bytes", traffic.value());
  const std::string problem = misfit(metrics);
  if (!problem.empty()) writer.set("error", problem);
  for (const char* key : {"scenario", "wall_time_s", "format", "program_version", "sweep"}) {
    document.erase(key);
  }
  writer.row().details = document.dump();
}

/// What went wrong, where a file says each of its mistakes on a line of its own.
std::string one_line(const std::string& error) {
  std::string line;
  for (const char c : error) line += c == '\n' ? std::string("; ") : std::string(1, c);
  return clean_utf8(line);
}

/// Its name and hash are set, whatever becomes of it.
void run_point(const SweepPlan& plan, RowWriter& writer) {
  Diagnostics diagnostics;
  SweepPoint point = plan.point(writer.row().id - 1, diagnostics);
  diagnostics.throw_if_any();
  Scenario bare;
  bare.document = std::make_shared<const JsonValue>(std::move(point.document));
  const JsonValue* name = bare.document->find("name");
  bare.name = name && name->kind == JsonValue::Kind::String ? name->text : "";
  writer.set("name", clean_utf8(bare.name));
  Scenario scenario = load_point(bare.document);
  scenario.swept = std::move(point.swept);
  writer.set("name", clean_utf8(scenario.name));
  writer.set("scenario_hash", sha256(scenario_json(scenario).dump()));
  writer.set("seed", std::int64_t{scenario.seed});
  set_result(run_unexplained(scenario), writer);
}

}  // namespace

std::string column_of(const std::string& path) {
  return path.find('.') == std::string::npos ? "scenario." + path : path;
}

std::vector<SweepColumn> sweep_columns(const std::vector<std::string>& paths) {
  std::vector<SweepColumn> columns = {{"name", "of the scenario"}};
  for (const std::string& path : paths) columns.push_back({column_of(path), "what it was set to"});
  columns.push_back({"error", "why there are no figures, or why the plan does not fit; else null"});
  for (const ResultColumn& column : kResultColumns) {
    columns.push_back({column.name, column.meaning});
    if (std::string_view(column.name) != "fits_in_memory") continue;
    columns.push_back({"peak_memory_bytes", "of the fullest device"});
    columns.push_back({"peak_stash_bytes", "of the device that keeps most"});
    columns.push_back({"traffic_bytes", "of a step, on all links together"});
  }
  columns.push_back({"scenario_hash", "SHA-256 of the scenario as in its result"});
  columns.push_back({"seed", ""});
  columns.push_back({"program_version", ""});
  columns.push_back({"command", "that runs the scenario again"});
  columns.push_back({"wall_time_s", "that it took; the only column that differs between runs"});
  return columns;
}

std::size_t place_of(const std::vector<SweepColumn>& columns, const std::string& name) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == name) return i;
  }
  CHECK(false, "a column is named that no sweep has");
  return 0;
}

SweepRow run_sweep_row(const SweepPlan& plan, std::size_t id, const SweepSource& source) {
  const auto begin = std::chrono::steady_clock::now();
  RowWriter writer(plan, id);
  set_identity(plan, source, writer);
  try {
    run_point(plan, writer);
  } catch (const Error& error) {
    writer.set("error", one_line(error.what()));
  } catch (const std::exception& bug) {
    writer.set("error", std::string("this is a bug in interlock: ") + bug.what());
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  writer.set("wall_time_s", took.count());
  return std::move(writer.row());
}

SweepRow failed_row(const SweepPlan& plan, std::size_t id, const SweepSource& source,
                    const std::string& problem) {
  RowWriter writer(plan, id);
  set_identity(plan, source, writer);
  writer.set("error", one_line(problem));
  return std::move(writer.row());
}

}  // namespace interlock
