// Collects the errors of published rows by device and framework, and tries ranges on them.
// SPDX-License-Identifier: Apache-2.0
#include "validate/published/error_samples.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "reports/words/encode.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

/// Measured over predicted step time; nothing where the quantity is no time of whole steps.
std::optional<double> time_ratio(const JudgedValue& value) {
  switch (value.what) {
    case Measurand::StepTime:
      return value.measured / *value.predicted;
    case Measurand::SamplesPerS:
    case Measurand::TokensPerS:
    case Measurand::TflopsPerDevice:
      return *value.predicted / value.measured;
    default:
      return std::nullopt;
  }
}

void add_name(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

double rounded(double ratio) { return std::round(ratio * 1e4) / 1e4; }

RunTraits traits_of(const ErrorTable& table) {
  return {table.generation, table.framework, {}, {}, {}, table.devices};
}

/// All tables but those of the source of `left`, which the same people measured on one machine.
std::vector<ErrorTable> of_other_sources(const std::vector<ErrorTable>& tables,
                                         const ErrorTable& left) {
  const std::string file = left.source.substr(0, left.source.find(':') + 1);
  std::vector<ErrorTable> others;
  for (const ErrorTable& table : tables) {
    if (!table.source.starts_with(file)) others.push_back(table);
  }
  return others;
}

}  // namespace

std::vector<ErrorTable> error_tables(const Accuracy& accuracy) {
  std::map<std::tuple<std::string, std::string, std::string>, ErrorTable> tables;
  for (const JudgedValue& value : accuracy.values) {
    if (!value.counts) continue;
    const std::optional<double> ratio = time_ratio(value);
    if (!ratio) continue;
    const MeasurementFile& file = accuracy.files[value.file];
    const MeasuredTable& from = file.tables[value.table];
    const MeasuredRow& row = from.rows[value.row];
    const JsonValue& document =
        row.candidates.empty() ? row.document : row.candidates.front().document;
    const RunTraits traits = traits_of(lay_out(load_questions(document).front()));
    const std::string source = file.name + ": " + from.name;
    ErrorTable& table = tables[{source, traits.generation, traits.framework}];
    table.source = source;
    table.generation = traits.generation;
    table.framework = traits.framework;
    table.devices = std::max(table.devices, traits.devices);
    add_name(table.strategies, traits.strategy);
    add_name(table.schedules, traits.schedule);
    add_name(table.precisions, traits.precision);
    table.ratios.push_back(rounded(*ratio));
  }
  std::vector<ErrorTable> list;
  for (auto& [key, table] : tables) {
    std::sort(table.ratios.begin(), table.ratios.end());
    list.push_back(std::move(table));
  }
  return list;
}

double widening_of(const std::vector<ErrorTable>& tables) {
  // Each row: its distance from the middle over that of the end of the range.
  std::vector<std::pair<double, double>> needed;  // widening, weight
  double lines = 0;
  for (const ErrorTable& left : tables) {
    const auto spread = spread_of(of_other_sources(tables, left), traits_of(left));
    if (!spread || left.ratios.empty()) continue;
    ++lines;
    for (const double ratio : left.ratios) {
      const double end =
          std::log((ratio < spread->middle ? spread->low : spread->high) / spread->middle);
      const double off = std::log(ratio / spread->middle);
      needed.emplace_back(off == 0 ? 0 : std::abs(off / end),
                          1 / static_cast<double>(left.ratios.size()));
    }
  }
  std::sort(needed.begin(), needed.end());
  constexpr double kRounding = 1e-9;
  double within = kRounding;
  for (const auto& [widening, weight] : needed) {
    within += weight;
    if (within >= kRangeLevel * lines) return std::clamp(widening, 1.0, kMostWidening);
  }
  return 1;
}

std::string errors_json(const PublishedErrors& errors, const std::string& command) {
  std::string text = "{\n  \"format\": \"interlock-errors/1\",\n  \"command\": " +
                     Json(clean_utf8(command)).dump() +
                     ",\n  \"widening\": " + Json(rounded(errors.widening)).dump() +
                     ",\n  \"tables\": [";
  for (std::size_t i = 0; i < errors.tables.size(); ++i) {
    const ErrorTable& table = errors.tables[i];
    const Json json{
        {"source", clean_utf8(table.source)},       {"generation", clean_utf8(table.generation)},
        {"framework", clean_utf8(table.framework)}, {"devices", table.devices},
        {"strategies", table.strategies},           {"schedules", table.schedules},
        {"precisions", table.precisions},           {"measured_over_predicted", table.ratios}};
    text += (i == 0 ? "\n    " : ",\n    ") + json.dump();
  }
  return text + "\n  ]\n}\n";
}

std::vector<Coverage> leave_one_out(const std::vector<ErrorTable>& tables) {
  std::vector<Coverage> lines;
  for (const ErrorTable& left : tables) {
    PublishedErrors others{of_other_sources(tables, left)};
    others.widening = widening_of(others.tables);
    const Confidence found = range_from(others, traits_of(left), Seconds(1));
    if (!found.range) continue;
    const std::string framework = left.framework.empty() ? "" : ", " + left.framework;
    Coverage line{left.source + " (" + left.generation + framework + ")", 0, 0, found.range->basis};
    for (const double ratio : left.ratios) {
      ++line.rows;
      line.within += ratio >= found.range->low.value() && ratio <= found.range->high.value();
    }
    lines.push_back(line);
  }
  return lines;
}

std::string coverage_words(const std::vector<Coverage>& coverage) {
  std::string text;
  int rows = 0, within = 0;
  double shares = 0;
  for (const Coverage& line : coverage) {
    const double share = static_cast<double>(line.within) / line.rows;
    text += line.source + ": " + std::to_string(line.within) + " of " + std::to_string(line.rows) +
            " within the range of " + line.basis + "\n";
    rows += line.rows;
    within += line.within;
    shares += share;
  }
  if (rows == 0) return "no table has a range without its own source\n";
  return text + "all rows: " + std::to_string(within) + " of " + std::to_string(rows) + ", " +
         fixed(100.0 * within / rows, 1) +
         " %; mean over tables: " + fixed(100 * shares / static_cast<double>(coverage.size()), 1) +
         " %\n";
}

}  // namespace interlock
