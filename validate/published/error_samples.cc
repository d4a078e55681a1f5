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

using TableSet = std::map<std::tuple<std::string, std::string, std::string>, ErrorTable>;

std::string source_of(const Accuracy& accuracy, const JudgedValue& value) {
  const MeasurementFile& file = accuracy.files[value.file];
  return file.name + ": " + file.tables[value.table].name;
}

Question question_of(const Accuracy& accuracy, const JudgedValue& value) {
  const MeasuredRow& row = accuracy.files[value.file].tables[value.table].rows[value.row];
  return load_questions(row.candidates.empty() ? row.document : row.candidates.front().document)
      .front();
}

void add_row(ErrorTable& table, const std::string& source, const RunTraits& traits, double ratio) {
  table.source = source;
  table.generation = traits.generation;
  table.framework = traits.framework;
  table.devices = std::max(table.devices, traits.devices);
  add_name(table.strategies, traits.strategy);
  add_name(table.schedules, traits.schedule);
  add_name(table.precisions, traits.precision);
  table.ratios.push_back(rounded(ratio));
}

std::vector<ErrorTable> sorted(TableSet tables) {
  std::vector<ErrorTable> list;
  list.reserve(tables.size());
  for (auto& entry : tables) {
    ErrorTable& table = entry.second;
    std::sort(table.ratios.begin(), table.ratios.end());
    list.push_back(std::move(table));
  }
  return list;
}

/// Returns all tables but those of the source of `left`, which the same people measured on one
/// machine.
std::vector<ErrorTable> of_other_sources(const std::vector<ErrorTable>& tables,
                                         const ErrorTable& left) {
  const std::string file = left.source.substr(0, left.source.find(':') + 1);
  std::vector<ErrorTable> others;
  for (const ErrorTable& table : tables) {
    if (!table.source.starts_with(file)) others.push_back(table);
  }
  return others;
}

std::string tables_json(const std::vector<ErrorTable>& tables) {
  std::string text = "[";
  for (const ErrorTable& table : tables) {
    const Json json{
        {"source", clean_utf8(table.source)},       {"generation", clean_utf8(table.generation)},
        {"framework", clean_utf8(table.framework)}, {"devices", table.devices},
        {"strategies", table.strategies},           {"schedules", table.schedules},
        {"precisions", table.precisions},           {"measured_over_predicted", table.ratios}};
    text += (&table == tables.data() ? "\n    " : ",\n    ") + json.dump();
  }
  return text + "\n  ]";
}

}  // namespace

std::vector<ErrorTable> error_tables(const Accuracy& accuracy) {
  TableSet tables;
  for (const JudgedValue& value : accuracy.values) {
    const std::optional<double> ratio = value.counts ? time_ratio(value) : std::nullopt;
    if (!ratio) continue;
    const std::string source = source_of(accuracy, value);
    const RunTraits traits = traits_of(lay_out(question_of(accuracy, value)).draft);
    add_row(tables[{source, traits.generation, traits.framework}], source, traits, *ratio);
  }
  return sorted(std::move(tables));
}

std::vector<ErrorTable> borrowed_tables(const Accuracy& own, const Accuracy& borrowed) {
  CHECK(own.values.size() == borrowed.values.size(), "both judge the same rows");
  TableSet tables;
  for (std::size_t i = 0; i < borrowed.values.size(); ++i) {
    const JudgedValue& value = borrowed.values[i];
    const std::optional<double> ratio = value.counts ? time_ratio(value) : std::nullopt;
    if (!ratio || own.values[i].predicted == value.predicted) continue;
    Question question = question_of(borrowed, value);
    RunTraits traits = traits_of(lay_out(question).draft);
    const std::string source = source_of(borrowed, value) + ", " + traits.generation +
                               " with efficiencies of " +
                               borrow_from_others(question.cluster.machines.front().device);
    traits.generation = kBorrowedGeneration;
    traits.framework.clear();
    add_row(tables[{source, "", ""}], source, traits, *ratio);
  }
  return sorted(std::move(tables));
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
  return "{\n  \"format\": \"interlock-errors/1\",\n  \"command\": " +
         Json(clean_utf8(command)).dump() +
         ",\n  \"widening\": " + Json(rounded(errors.widening)).dump() +
         ",\n  \"tables\": " + tables_json(errors.tables) +
         ",\n  \"borrowed_widening\": " + Json(rounded(errors.borrowed_widening)).dump() +
         ",\n  \"borrowed\": " + tables_json(errors.borrowed) + "\n}\n";
}

std::vector<Coverage> leave_one_out(const std::vector<ErrorTable>& tables) {
  std::vector<Coverage> lines;
  for (const ErrorTable& left : tables) {
    PublishedErrors others{of_other_sources(tables, left)};
    others.widening = widening_of(others.tables);
    const Confidence found = range_from(others, traits_of(left), Seconds(1));
    if (!found.range) continue;
    const std::string framework = left.framework.empty() ? "" : ", " + left.framework;
    Coverage line{.source = left.source + " (" + left.generation + framework + ")",
                  .median = left.ratios[left.ratios.size() / 2],
                  .basis = found.range->basis};
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
            " within the range of " + line.basis + "; measured over predicted " +
            fixed(line.median, 2) + " in the middle\n";
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
