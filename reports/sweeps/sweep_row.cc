// Runs a scenario of a sweep and takes its result apart into columns.
// SPDX-License-Identifier: Apache-2.0
#include "reports/sweeps/sweep_row.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/checksum.h"
#include "base/error.h"
#include "base/text.h"
#include "reports/headlines/headlines.h"
#include "reports/result/all_metrics.h"
#include "reports/result/result_json.h"
#include "reports/result/scenario_json.h"
#include "reports/words/encode.h"
#include "scenarios/simulate/run_scenario.h"
#include "scenarios/sweep/told_failure.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

/// Returns the metrics that have columns at `place`, in their order.
std::vector<const MetricRow*> metrics_at(Columns place) {
  std::vector<const MetricRow*> rows;
  for (const MetricRow& row : all_metrics()) {
    if (row.columns == place) rows.push_back(&row);
  }
  return rows;
}

constexpr Columns kPlaces[] = {Columns::Headline, Columns::Identity, Columns::Simulation};

SqlValue cell_of(const Json& value) {
  if (value.is_boolean()) return std::int64_t{value.get<bool>()};
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  return {};
}

SqlValue cell_at(const Json& document, const char* pointer) {
  const Json::json_pointer at(pointer);
  return document.contains(at) ? cell_of(document[at]) : SqlValue{};
}

/// Returns the cell of a metric that follows from an array of the result.
SqlValue cell_of(const MetricRow& row, const Metrics& metrics) {
  return cell_of(bytes_json(Bytes(number_of(row, metrics).value_or(0))));
}

std::string value_text(const JsonValue& value) {
  const Json json = value_json(value);
  if (!json.is_string()) return json.dump();
  // A text needs quotes only where it could be taken for JSON.
  const auto text = json.get<std::string>();
  return Json::accept(text) ? json.dump() : text;
}

/// Returns a word as a shell takes it.
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

/// Returns the command that runs one scenario again.
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
  std::vector<std::string> columns_;
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

/// Returns why a plan that was simulated is none; empty: it is one.
std::string misfit(const Metrics& metrics) {
  if (metrics.fits_in_memory) return "";
  const Bytes peak = fullest_device(metrics).peak_memory;
  if (metrics.memory_capacity && peak > *metrics.memory_capacity) {
    return "does not fit: " + format(peak) + " of " + format(*metrics.memory_capacity);
  }
  return "does not fit: the host needs " + format(metrics.host_memory) + " of " +
         format(*metrics.host_capacity);
}

void set_result(const ScenarioResult& result, RowWriter& writer) {
  const Metrics& metrics = result.measurement.metrics;
  Json document = result_document(result);
  for (const MetricRow& row : all_metrics()) {
    if (row.columns == Columns::None) continue;
    writer.set(row.key, row.pointer ? cell_at(document, row.pointer) : cell_of(row, metrics));
  }
  const std::string problem = misfit(metrics);
  if (!problem.empty()) writer.set("error", problem);
  for (const char* key : {"scenario", "wall_time_s", "format", "program_version", "sweep"}) {
    document.erase(key);
  }
  writer.row().details = document.dump();
}

/// Puts the lines of an error, one for each mistake of a file, into one line, without the options
/// that they name before a place: the row has what was set, and a spreadsheet takes "-" for a
/// formula.
std::string one_line(const std::string& error) {
  std::string line;
  std::istringstream lines(error);
  for (std::string mistake; std::getline(lines, mistake);) {
    const std::size_t place = mistake.find(": /");
    const bool option = mistake.starts_with("--set ") && place != std::string::npos;
    line += (line.empty() ? "" : "; ") + (option ? mistake.substr(place + 2) : mistake);
  }
  return clean_utf8(line);
}

/// Its name and hash are set, whatever becomes of it.
void run_point(const SweepPlan& plan, RowWriter& writer) {
  Diagnostics diagnostics;
  SweepPoint point = plan.point(writer.row().id - 1, diagnostics);
  diagnostics.throw_if_any();
  Question bare;
  bare.document = std::make_shared<const JsonValue>(std::move(point.document));
  const JsonValue* name = bare.document->find("name");
  bare.name = name && name->kind == JsonValue::Kind::String ? name->text : "";
  writer.set("name", clean_utf8(bare.name));
  Question scenario = load_point(bare.document);
  scenario.swept = std::move(point.swept);
  writer.set("name", clean_utf8(scenario.name));
  writer.set("scenario_hash", sha256(scenario_json(scenario).dump()));
  writer.set("seed", std::int64_t{scenario.simulation.seed});
  scenario.simulation.engine = engine_of_many(scenario.simulation.engine);
  set_result(simulate_plan(make_plan(scenario), Keep::Nothing), writer);
}

}  // namespace

std::string column_of(const std::string& path) {
  return path.find('.') == std::string::npos ? "scenario." + path : path;
}

std::vector<std::string> sweep_columns(const std::vector<std::string>& paths) {
  std::vector<std::string> columns = {"name"};
  for (const std::string& path : paths) columns.push_back(column_of(path));
  columns.emplace_back("error");
  for (const Columns place : kPlaces) {
    for (const MetricRow* row : metrics_at(place)) columns.emplace_back(row->key);
  }
  for (const char* last : {"scenario_hash", "seed", "program_version", "command", "wall_time_s"}) {
    columns.emplace_back(last);
  }
  return columns;
}

std::size_t place_of(const std::vector<std::string>& columns, const std::string& name) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == name) return i;
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
  } catch (const std::exception& failure) {
    writer.set("error", one_line(told_failure(failure).words));
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
