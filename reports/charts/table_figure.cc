// Measures of results as a table in Markdown, for pages.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "reports/charts/measures.h"
#include "reports/charts/paper_figures.h"
#include "reports/charts/swept.h"
#include "reports/headlines/headlines.h"
#include "reports/words/encode.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

std::string line(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + markdown_cell(cell) + " |";
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

std::string across(const std::vector<ReadResult>& results, const Measured& measure) {
  if (std::any_of(results.begin(), results.end(),
                  [](const ReadResult& result) { return result.swept.empty(); })) {
    return by_result(results, {measure});
  }
  const SweptTable table = swept_table(results);
  std::vector<std::string> head = {measure.label};
  for (const SweptValue& value : table.columns) head.push_back(value.label);
  std::string text = line(head) + ruler(head.size());
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    std::vector<std::string> cells = {table.rows[row]};
    for (const auto& result : table.cells[row]) {
      cells.push_back(result ? shown(measure, *result) : kUnknown);
    }
    text += line(cells);
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
