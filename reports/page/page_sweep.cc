// Sweeps as small JSON: paths with their values, then a row of figures for each result.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page/page_sweep.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "reports/headlines/figures.h"
#include "reports/page/page_frame.h"
#include "reports/words/encode.h"
#include "sim/measure/metric_table.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;
using Results = std::vector<ScenarioResult>;

constexpr std::size_t kFewestUnswept = 3;  // results that are worth a front

/// A swept path and the values that it takes: numbers ascending, others as they come.
struct SweptAxis {
  std::string path;
  std::vector<SweptValue> values;
};

const SweptValue* swept_at(const ScenarioResult& result, const std::string& path) {
  for (const SweptValue& value : result.scenario.swept) {
    if (value.path == path) return &value;
  }
  return nullptr;
}

bool same_value(const SweptValue& a, const SweptValue& b) {
  return a.label == b.label && a.number == b.number;
}

std::optional<std::size_t> index_in(const SweptAxis& axis, const SweptValue& value) {
  const auto found = std::find_if(axis.values.begin(), axis.values.end(),
                                  [&](const SweptValue& one) { return same_value(one, value); });
  if (found == axis.values.end()) return std::nullopt;
  return static_cast<std::size_t>(found - axis.values.begin());
}

void sort_numbers(SweptAxis& axis) {
  const bool numbers = std::all_of(axis.values.begin(), axis.values.end(),
                                   [](const SweptValue& value) { return value.number; });
  if (!numbers) return;
  std::stable_sort(axis.values.begin(), axis.values.end(),
                   [](const SweptValue& a, const SweptValue& b) { return *a.number < *b.number; });
}

/// Paths to which every result has a value, of which there are several.
std::vector<SweptAxis> axes_of(const Results& results) {
  std::vector<SweptAxis> axes;
  for (const SweptValue& candidate : results.front().scenario.swept) {
    if (candidate.path == "name") continue;
    SweptAxis axis{candidate.path, {}};
    bool everywhere = true;
    for (const ScenarioResult& result : results) {
      const SweptValue* value = swept_at(result, candidate.path);
      everywhere = everywhere && value != nullptr;
      if (value && !index_in(axis, *value)) axis.values.push_back(*value);
    }
    if (!everywhere || axis.values.size() < 2) continue;
    sort_numbers(axis);
    axes.push_back(std::move(axis));
  }
  return axes;
}

/// The last key of a path, or all of it if another path ends alike.
std::string short_name(const SweptAxis& axis, const std::vector<SweptAxis>& axes) {
  const auto last = [](const std::string& path) { return path.substr(path.rfind('.') + 1); };
  const auto alike = std::count_if(axes.begin(), axes.end(), [&](const SweptAxis& other) {
    return last(other.path) == last(axis.path);
  });
  return alike > 1 ? axis.path : last(axis.path);
}

Json axis_json(const SweptAxis& axis, const std::vector<SweptAxis>& axes) {
  Json values = Json::array();
  for (const SweptValue& value : axis.values) {
    values.push_back({{"label", clean_utf8(value.label)}});
    if (value.number) values.back()["number"] = *value.number;
  }
  return {{"path", clean_utf8(axis.path)},
          {"name", clean_utf8(short_name(axis, axes))},
          {"values", std::move(values)}};
}

/// A figure of results. `unit`: "s", "B" and "share" are scaled for people, others are written.
struct Measure {
  std::string key, name, unit;
  bool more_is_better = false;
  std::function<std::optional<double>(const ScenarioResult&)> value;
};

const Metrics& metrics_of(const ScenarioResult& result) { return result.measurement.metrics; }

/// "s" and "B" for what is scaled to a unit for people, "share" for percent.
const char* unit_of(MetricKind kind) {
  if (kind == MetricKind::Time) return "s";
  return kind == MetricKind::Size ? "B" : "share";
}

Measure measure_of(const MetricRow& row) {
  return {row.key, row.words, unit_of(row.kind), row.better == Better::More,
          [&row](const ScenarioResult& result) { return number_of(row, metrics_of(result)); }};
}

/// Returns the most telling rate that all results know.
Measure rate_measure(const Results& results) {
  const MetricRow& row = common_rate(results);
  Measure rate = measure_of(row);
  rate.unit = rate_unit(row);
  return rate;
}

std::vector<Measure> all_measures(const Results& results) {
  std::vector<Measure> measures;
  for (const MetricRow& row : step_metrics()) {
    if ((row.traits & kOnPage) == 0) continue;
    measures.push_back(measure_of(row));
    if (measures.size() == 1) measures.push_back(rate_measure(results));
  }
  measures.push_back({"goodput", "goodput of the run", "share", true,
                      [](const ScenarioResult& result) -> std::optional<double> {
                        if (!result.run) return std::nullopt;
                        return result.run->statistics.goodput.mean;
                      }});
  return measures;
}

/// Figures that every result has.
std::vector<Measure> measures_of(const Results& results) {
  std::vector<Measure> measures = all_measures(results);
  std::erase_if(measures, [&](const Measure& measure) {
    return std::any_of(results.begin(), results.end(),
                       [&](const ScenarioResult& result) { return !measure.value(result); });
  });
  return measures;
}

Json result_row(const ScenarioResult& result, const std::vector<SweptAxis>& axes,
                const std::vector<Measure>& measures) {
  Json at = Json::array(), values = Json::array();
  for (const SweptAxis& axis : axes) at.push_back(*index_in(axis, *swept_at(result, axis.path)));
  for (const Measure& measure : measures) values.push_back(*measure.value(result));
  Json row{{"at", std::move(at)}, {"values", std::move(values)}};
  std::string words;
  for (const std::string& line : warnings(result)) words += (words.empty() ? "" : " ") + line;
  if (!words.empty()) row["warning"] = clean_utf8(words);
  if (!metrics_of(result).fits_in_memory) row["fails"] = true;
  return row;
}

std::string sweep_json(const Results& results, const std::vector<SweptAxis>& axes,
                       std::size_t drawn) {
  const std::vector<Measure> measures = measures_of(results);
  const std::string common = common_name(results);
  Json json{{"axes", Json::array()}, {"measures", Json::array()}, {"drawn", drawn}};
  for (const SweptAxis& axis : axes) json["axes"].push_back(axis_json(axis, axes));
  for (const Measure& measure : measures) {
    json["measures"].push_back({{"key", measure.key},
                                {"name", measure.name},
                                {"unit", measure.unit},
                                {"more_is_better", measure.more_is_better}});
  }
  Json& rows = json["results"] = Json::array();
  for (const ScenarioResult& result : results) {
    rows.push_back(result_row(result, axes, measures));
    rows.back()["name"] = clean_utf8(own_name(result.scenario.name, common));
  }
  return json.dump();
}

}  // namespace

std::string section_id(std::size_t index) {
  return "id=\"scenario-" + std::to_string(index) + "\" tabindex=\"-1\"";
}

std::string sweep_html(const std::vector<ScenarioResult>& results, std::size_t drawn) {
  const std::vector<SweptAxis> axes = axes_of(results);
  if (axes.empty() && results.size() < kFewestUnswept) return "";
  return "<div id=\"sweep\">\n" +
         data_html("application/sweep+json", sweep_json(results, axes, drawn)) + "</div>\n";
}

}  // namespace interlock
