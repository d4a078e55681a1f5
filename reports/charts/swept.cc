// The axis of a sweep, and the names of its curves.
// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/swept.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/text.h"

namespace interlock {
namespace {

constexpr double kFar = 32;                  // most over least, from which an axis is logarithmic
constexpr std::size_t kMostSweptMarks = 10;  // on such an axis

/// Returns the value that a sweep gave `result` at `path`, if it did.
const SweptValue* swept_at(const ReadResult& result, const std::string& path) {
  for (const SweptValue& value : result.swept) {
    if (value.path == path) return &value;
  }
  return nullptr;
}

/// Returns the unit of a value such as "10 Gb/s"; empty of a plain number, and of a text.
std::string unit_of(const SweptValue& value) {
  if (value.number || !parse_quantity(value.label)) return "";
  return value.label.substr(value.label.find_last_of(" 0123456789.") + 1);
}

/// Returns the value as a number, or as a quantity in `unit`.
std::optional<double> number_of(const SweptValue& value, const std::string& unit) {
  if (value.number) return value.number;
  const auto quantity = parse_quantity(value.label), one = parse_quantity("1 " + unit);
  if (!quantity || !one || quantity->dimension != one->dimension) return std::nullopt;
  return quantity->value / one->value;
}

std::vector<double> distinct(const std::vector<double>& values) {
  const std::set<double> all(values.begin(), values.end());
  return {all.begin(), all.end()};
}

/// Returns the words of an axis: the last key of `path`. A number at its end is a place in a list,
/// which says less.
std::string axis_words(const std::string& path) {
  std::string words = last_key(path);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

void finish(const std::vector<ReadResult>& results, Along& along) {
  bool devices = true;
  for (std::size_t r = 0; r < results.size(); ++r) {
    devices = devices && along.values[r] == results[r].devices;
  }
  if (devices) along.label = "devices";
  const std::vector<double> values = distinct(along.values);
  const bool far = values.size() > 2 && values.size() <= kMostSweptMarks && values.front() > 0 &&
                   values.back() / values.front() >= kFar;
  if (far) along.marks = values;
}

/// Fills `along` with the quality of results, if all tell it and it differs.
bool along_quality(const std::vector<ReadResult>& results, Along& along) {
  std::vector<double> values;
  for (const ReadResult& result : results) {
    if (const auto quality = result.value("quality")) values.push_back(*quality);
  }
  if (values.size() < results.size() || distinct(values).size() < 2) return false;
  along.values = values;
  along.label = results.front().quality_measure;
  along.quality = true;
  return true;
}

/// Returns the results that have a number at the path of `candidate`, and these numbers.
Along along_path(const std::vector<ReadResult>& results, const SweptValue& candidate) {
  const std::string unit = unit_of(candidate);
  Along along{.path = candidate.path, .label = axis_words(candidate.path)};
  if (!unit.empty()) along.label += " (" + unit + ")";
  for (const ReadResult& result : results) {
    const SweptValue* value = swept_at(result, candidate.path);
    const auto number = value ? number_of(*value, unit) : std::nullopt;
    if (number) along.values.push_back(*number);
  }
  return along;
}

template <class Value, class Same>
std::size_t place_in(std::vector<Value>& values, const Value& value, const Same& same) {
  const auto known = std::find_if(values.begin(), values.end(),
                                  [&](const Value& other) { return same(other, value); });
  const auto place = static_cast<std::size_t>(known - values.begin());
  if (known == values.end()) values.push_back(value);
  return place;
}

}  // namespace

std::string last_key(const std::string& path) { return path.substr(path.rfind('.') + 1); }

SweptTable swept_table(const std::vector<ReadResult>& results) {
  SweptTable table;
  for (std::size_t r = 0; r < results.size(); ++r) {
    const std::vector<SweptValue>& swept = results[r].swept;
    std::string name;
    for (std::size_t i = 0; i + 1 < swept.size(); ++i) {
      name += (name.empty() ? "" : ", ") + swept_words(swept[i]);
    }
    const std::size_t row = place_in(table.rows, name, std::equal_to<>());
    const std::size_t column =
        place_in(table.columns, swept.back(),
                 [](const SweptValue& a, const SweptValue& b) { return a.label == b.label; });
    table.cells.resize(table.rows.size());
    table.cells[row].resize(std::max(table.cells[row].size(), column + 1));
    table.cells[row][column] = r;
  }
  for (auto& row : table.cells) row.resize(table.columns.size());
  return table;
}

std::optional<Along> find_axis(const std::vector<ReadResult>& results) {
  Along best;
  std::size_t most = 1;
  for (const SweptValue& candidate : results.front().swept) {
    const Along along = along_path(results, candidate);
    const std::size_t count = distinct(along.values).size();
    if (along.values.size() < results.size() || count <= most) continue;
    most = count;
    best = along;
  }
  if (most == 1 && along_quality(results, best)) return best;
  if (most == 1) {
    for (const ReadResult& result : results) best.values.push_back(result.devices);
    if (distinct(best.values).size() < 2) return std::nullopt;
  }
  finish(results, best);
  return best;
}

std::string swept_words(const SweptValue& value) {
  const std::string key = last_key(value.path);
  const bool speaks = key == "training" || key == "parallel" || key == "model" ||
                      key == "cluster" || key == "strategy" || key == "schedule" ||
                      value.label.find('=') != std::string::npos;
  return speaks ? value.label : key + " " + value.label;
}

std::string curve_of(const ReadResult& result, const Along& along) {
  if (along.quality) return result.name.substr(0, result.name.find(" | "));
  std::string name;
  for (const SweptValue& value : result.swept) {
    if (value.path == along.path || value.path == "name") continue;
    name += (name.empty() ? "" : ", ") + swept_words(value);
  }
  if (!name.empty()) return name;
  return along.path.empty() ? result.file : "all";
}

std::string point_of(const ReadResult& result, const Along& along) {
  return along.quality && !result.swept.empty() ? result.swept.front().label : "";
}

}  // namespace interlock
