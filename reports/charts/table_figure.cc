// Measures of results as a table in Markdown or LaTeX, for pages and papers.
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

constexpr const char* kFailsMark = "†";  // after what does not fit
constexpr const char* kFailsWords = "† does not fit in the memory of a device";

/// Cells as they are shown; the first column holds names, the others numbers.
struct TableText {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows = {};
  bool fails = false;  // some are marked
};

std::string markdown_line(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + markdown_cell(cell) + " |";
  return text + "\n";
}

std::string markdown(const TableText& table) {
  std::string text = markdown_line(table.head) + "| --- |";
  for (std::size_t i = 1; i < table.head.size(); ++i) text += " ---: |";
  text += "\n";
  for (const std::vector<std::string>& row : table.rows) text += markdown_line(row);
  return table.fails ? text + "\n" + kFailsWords + "\n" : text;
}

std::string latex_line(const std::vector<std::string>& cells) {
  std::string text = "  " + latex_cell(cells.front());
  for (std::size_t i = 1; i < cells.size(); ++i) text += " & " + latex_cell(cells[i]);
  return text + " \\\\\n";
}

/// Returns a tabular that needs no package.
std::string latex(const TableText& table) {
  std::string text =
      "\\begin{tabular}{l" + std::string(table.head.size() - 1, 'r') + "}\n  \\hline\n";
  text += latex_line(table.head) + "  \\hline\n";
  for (const std::vector<std::string>& row : table.rows) text += latex_line(row);
  text += "  \\hline\n";
  if (table.fails) {
    text += "  \\multicolumn{" + std::to_string(table.head.size()) + "}{l}{" +
            latex_cell(kFailsWords) + "} \\\\\n";
  }
  return text + "\\end{tabular}\n";
}

TableText by_result(const std::vector<ReadResult>& results, const std::vector<Measured>& measures) {
  TableText table{{""}};
  for (const Measured& measure : measures) table.head.push_back(measure.label);
  const std::vector<std::string> names = names_of(results);
  const std::string common = common_name(names);
  for (std::size_t r = 0; r < results.size(); ++r) {
    std::string name = own_name(names[r], common);
    for (std::size_t at = name.find(" | "); at != std::string::npos; at = name.find(" | ")) {
      name.replace(at, 3, ", ");
    }
    if (!results[r].fits) name += (name.empty() ? "" : " ") + std::string(kFailsMark);
    table.fails = table.fails || !results[r].fits;
    std::vector<std::string>& row = table.rows.emplace_back();
    row.push_back(name);
    for (const Measured& measure : measures) row.push_back(shown(measure, r));
  }
  return table;
}

TableText across(const std::vector<ReadResult>& results, const Measured& measure) {
  if (std::any_of(results.begin(), results.end(),
                  [](const ReadResult& result) { return result.swept.empty(); })) {
    return by_result(results, {measure});
  }
  const SweptTable swept = swept_table(results);
  TableText table{{measure.label}};
  for (const SweptValue& value : swept.columns) table.head.push_back(value.label);
  for (std::size_t row = 0; row < swept.rows.size(); ++row) {
    std::vector<std::string>& cells = table.rows.emplace_back();
    cells.push_back(swept.rows[row]);
    for (const auto& result : swept.cells[row]) {
      cells.push_back(result ? shown(measure, *result) : kUnknown);
      if (!result || results[*result].fits) continue;
      cells.back() += " " + std::string(kFailsMark);
      table.fails = true;
    }
  }
  return table;
}

}  // namespace

std::string table_figure(const std::vector<ReadResult>& results, const std::string& measures,
                         TableForm form) {
  const std::vector<Measured> shown = measured(
      measures.empty() ? "step_time,speed_up,busy,useful,memory,traffic" : measures, results);
  const TableText table =
      shown.size() > 1 ? by_result(results, shown) : across(results, shown.front());
  return form == TableForm::Latex ? latex(table) : markdown(table);
}

}  // namespace interlock
