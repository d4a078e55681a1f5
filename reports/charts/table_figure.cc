// Measures of results as a table in Markdown, for pages.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "reports/charts/measures.h"
#include "reports/charts/paper_figures.h"
#include "reports/charts/swept.h"
#include "reports/headlines/figures.h"

namespace interlock {
namespace {

std::string line(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + cell + " |";
  return text + "\n";
}

std::string ruler(std::size_t cells) {
  std::string text = "| --- |";
  for (std::size_t i = 1; i < cells; ++i) text += " ---: |";
  return text + "\n";
}

std::string by_result(const std::vector<ReadResult>& results,
                      const std::vector<Measured>& measures) {
  std::vector<std::string> head = {""}, names;
  for (const Measured& measure : measures) head.push_back(measure.label);
  for (const ReadResult& result : results) names.push_back(result.name);
  const std::string common = common_name(names);
  std::string text = line(head) + ruler(head.size());
  for (std::size_t r = 0; r < results.size(); ++r) {
    std::vector<std::string> cells = {own_name(names[r], common)};
    for (std::size_t at = cells[0].find(" | "); at != std::string::npos;
         at = cells[0].find(" | ")) {
      cells[0].replace(at, 3, ", ");
    }
    for (const Measured& measure : measures) cells.push_back(shown(measure, r));
    text += line(cells);
  }
  return text;
}

/// All swept values of `result` but the last, and its model where files differ.
std::string row_name(const ReadResult& result) {
  std::string name;
  for (std::size_t i = 0; i + 1 < result.swept.size(); ++i) {
    name += (name.empty() ? "" : ", ") + swept_words(result.swept[i]);
  }
  return name;
}

std::size_t place_of(const std::string& name, std::vector<std::string>& names) {
  const auto known = std::find(names.begin(), names.end(), name);
  const auto place = static_cast<std::size_t>(known - names.begin());
  if (known == names.end()) names.push_back(name);
  return place;
}

std::string across(const std::vector<ReadResult>& results, const Measured& measure) {
  std::vector<std::string> rows, columns;
  std::vector<std::vector<std::string>> cells;
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (results[r].swept.empty()) return by_result(results, {measure});
    const std::size_t row = place_of(row_name(results[r]), rows);
    const std::size_t column = place_of(results[r].swept.back().label, columns);
    cells.resize(rows.size());
    cells[row].resize(std::max(cells[row].size(), column + 1), "–");
    cells[row][column] = shown(measure, r);
  }
  std::vector<std::string> head = columns;
  head.insert(head.begin(), measure.label);
  std::string text = line(head) + ruler(head.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    cells[row].resize(columns.size(), "–");
    cells[row].insert(cells[row].begin(), rows[row]);
    text += line(cells[row]);
  }
  return text;
}

}  // namespace

std::string table_figure(const std::vector<ReadResult>& results, const std::string& measures) {
  const std::vector<Measured> shown = measured(
      measures.empty() ? "step_time,speed_up,busy,useful,memory,traffic" : measures, results);
  return shown.size() > 1 ? by_result(results, shown) : across(results, shown.front());
}

}  // namespace interlock
