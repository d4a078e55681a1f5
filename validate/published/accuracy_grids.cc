// The tables of an accuracy report, and how they look on a terminal and in Markdown.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/text.h"
#include "reports/terminal/layout.h"
#include "reports/words/encode.h"
#include "reports/words/scale.h"
#include "validate/published/accuracy_report.h"
#include "validate/published/planner_grid.h"

namespace interlock {
namespace {

constexpr std::size_t kLongestProblem = 300;
constexpr std::size_t kWorstOnTerminal = 1, kWorstInFile = 5;  // of a table

std::string percent(double fraction) { return fixed(100 * fraction, 1); }

const MeasurementFile& file_of(const Accuracy& accuracy, std::size_t file) {
  return accuracy.files[file];
}
const MeasuredTable& table_of(const Accuracy& accuracy, std::size_t file, std::size_t table) {
  return accuracy.files[file].tables[table];
}

std::string value_text(Measurand what, double value) {
  const std::string& name = measurand_names()[static_cast<int>(what)];
  if (name.ends_with("_s") && !name.ends_with("per_s")) return format(Seconds(value));
  if (name.ends_with("_bytes")) return format(Bytes(value));
  return format_number(value);
}

std::string target_text(const AccuracyLine& line) {
  std::string text;
  const auto add = [&](const char* name, std::optional<double> bound, const char* sign) {
    if (bound) {
      text += (text.empty() ? "" : ", ") + std::string(name) + sign + fixed(100 * *bound, 0);
    }
  };
  add("mean", line.target.mape, "≤");
  add("max", line.target.most, "≤");
  add("ρ", line.target.spearman, "≥");
  add("orders", line.target.orders, "≥");
  if (text.empty()) return "";
  return text + (line.missed.empty() ? " ✓" : " ✗");
}

std::vector<Cell> summary_cells(const AccuracySummary& summary) {
  const ErrorSummary& errors = summary.errors;
  const auto share = [&](double value) {
    return errors.count > 0 ? Cell{percent(value)} : Cell{kUnknown};
  };
  const OrderSummary& order = summary.order;
  return {{std::to_string(errors.count)},
          {std::to_string(summary.fitted)},
          {std::to_string(summary.refused), std::nullopt, summary.refused > 0},
          share(errors.mape),
          share(errors.median),
          share(summary.p90),
          share(errors.most),
          errors.count > 0 ? Cell{signed_percent(errors.bias)} : Cell{kUnknown},
          {order.mean ? fixed(*order.mean, 2) : kUnknown},
          {order.least ? fixed(*order.least, 2) : kUnknown},
          {order.pairs > 0 ? std::to_string(order.pairs_right) + "/" + std::to_string(order.pairs)
                           : kUnknown}};
}

std::vector<Column> summary_columns() {
  return {{"Rows", ""},     {"Fitted", ""}, {"Refused", ""}, {"MAPE", "%"},
          {"Median", "%"},  {"p90", "%"},   {"Max", "%"},    {"Bias", "%"},
          {"Spearman", ""}, {"Least", ""},  {"Orders", ""}};
}

std::string name_of(const Accuracy& accuracy, const JudgedValue& value) {
  return file_of(accuracy, value.file).name + ": " +
         table_of(accuracy, value.file, value.table).rows[value.row].id;
}

std::vector<Cell> value_cells(const Accuracy& accuracy, const JudgedValue& value) {
  const MeasuredRow& row = table_of(accuracy, value.file, value.table).rows[value.row];
  std::string remark = row.remark;
  const std::string fitted = fitted_on(row, value.what);
  if (!fitted.empty()) remark = "fitted: " + fitted + (remark.empty() ? "" : "; ") + remark;
  const RowPrediction& prediction = accuracy.predictions[value.file][value.table][value.row];
  if (!prediction.choice.empty()) {
    remark += std::string(remark.empty() ? "" : "; ") + "best: " + prediction.choice;
  }
  if (!prediction.values.fits && table_of(accuracy, value.file, value.table).memory_stated) {
    remark += std::string(remark.empty() ? "" : "; ") + "is predicted not to fit in memory";
  }
  return {{name_of(accuracy, value)},
          {measurand_names()[static_cast<int>(value.what)]},
          {value_text(value.what, value.measured)},
          {value.predicted ? value_text(value.what, *value.predicted) : kUnknown},
          {value.predicted ? signed_percent(value.error()) : kUnknown},
          {remark}};
}

Grid empty_value_grid() {
  return {{{"Row", "", false},
           {"Quantity", "", false},
           {"Measured", ""},
           {"Predicted", ""},
           {"Error", "%"},
           {"Remark", "", false}},
          {}};
}

std::string sources_markdown(const Accuracy& accuracy) {
  std::string text;
  for (const MeasurementFile& file : accuracy.files) {
    text += "### " + file.name + ": " + file.title + "\n\n" + file.paper;
    if (!file.place.empty()) text += ", " + file.place;
    if (!file.address.empty()) text += ". " + file.address;
    if (!file.licence.empty()) text += ". " + file.licence;
    text += ".\n\n";
    for (const std::string& note : file.notes) text += "- " + note + "\n";
    if (!file.notes.empty()) text += "\n";
  }
  return text;
}

}  // namespace

std::string markdown_table(const Grid& grid) {
  std::string head = "|", rule = "|";
  for (const Column& column : grid.columns) {
    head += " " + column.head + (column.unit.empty() ? "" : " " + column.unit) + " |";
    rule += column.number ? " ---: |" : " --- |";
  }
  std::string text = head + "\n" + rule + "\n";
  for (const auto& row : grid.rows) {
    text += "|";
    for (const Cell& cell : row) text += " " + markdown_cell(cell.text) + " |";
    text += "\n";
  }
  return text;
}

Grid accuracy_grid(const Accuracy& accuracy) {
  Grid grid{{{"Source, table", "", false}, {"Quantity", "", false}}, {}};
  for (const Column& column : summary_columns()) grid.columns.push_back(column);
  grid.columns.push_back({"Target", "%", false});
  for (const AccuracyLine& line : accuracy.lines) {
    const std::string name = line.group.empty() ? file_of(accuracy, line.file).name + ": " +
                                                      table_of(accuracy, line.file, line.table).name
                                                : "– " + line.group;
    std::vector<Cell> row = {{name}, {measurand_names()[static_cast<int>(line.what)]}};
    for (Cell& cell : summary_cells(line.summary)) row.push_back(std::move(cell));
    row.push_back({target_text(line), std::nullopt, !line.missed.empty()});
    grid.rows.push_back(std::move(row));
  }
  return grid;
}

namespace {

/// Says how often it was foreseen which plans have the memory to run.
std::string fit_words(const FitSummary& fit) {
  if (fit.ran + fit.failed == 0) return "";
  std::string text = "Fit: of " + std::to_string(fit.ran) + " rows that ran " +
                     std::to_string(fit.ran_without_room) + " are predicted not to, " +
                     std::to_string(fit.over_capacity) +
                     " of them for tensors alone, the others for what processes hold beside them";
  if (fit.failed > 0) {
    text += "; of " + std::to_string(fit.failed) + " that ran out of memory " +
            std::to_string(fit.failed_with_room) + " are predicted to run";
  }
  return text + ".\n";
}

}  // namespace

std::string accuracy_totals(const Accuracy& accuracy) {
  std::string text;
  const auto add = [&](const char* what, const AccuracySummary& summary) {
    const ErrorSummary& errors = summary.errors;
    if (summary.rows == 0) return;
    text += std::string(what) + ": " + std::to_string(errors.count) +
            " values that nothing was fitted on, MAPE " + percent(errors.mape) + "% (" +
            percent(errors.low) + " to " + percent(errors.high) + "), median " +
            percent(errors.median) + "%, p90 " + percent(summary.p90) + "%, bias " +
            signed_percent(errors.bias) + "%; " + std::to_string(summary.fitted) + " fitted, " +
            std::to_string(summary.refused) + " refused; " +
            std::to_string(summary.order.pairs_right) + " of " +
            std::to_string(summary.order.pairs) + " orders right.\n";
  };
  add("Speed", accuracy.speed);
  add("Memory", accuracy.memory);
  return text + fit_words(accuracy.fit);
}

std::string accuracy_note() {
  return "Rows: predicted, and nothing fitted on them; all figures are over these. Fitted: rows "
         "that rates and times were fitted on; their memory counts. Refused: no prediction. Errors "
         "are predicted / measured - 1; MAPE, median, p90 and max of their absolute values, bias "
         "of "
         "themselves. Spearman: mean over the series of plans of three rows and more, and the "
         "least. Orders: pairs of plans measured over 3 % apart whose order was foreseen.";
}

Grid worst_grid(const Accuracy& accuracy, std::size_t most) {
  std::vector<const JudgedValue*> order;
  for (const JudgedValue& value : accuracy.values) {
    if (value.counts) order.push_back(&value);
  }
  const auto place = [](const JudgedValue* v) { return std::tuple(v->file, v->table, v->what); };
  std::stable_sort(order.begin(), order.end(), [&](const auto* a, const auto* b) {
    return std::tuple(place(a), -std::abs(a->error())) <
           std::tuple(place(b), -std::abs(b->error()));
  });
  Grid grid = empty_value_grid();
  std::size_t taken = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && place(order[i]) != place(order[i - 1])) taken = 0;
    if (taken++ < most) grid.rows.push_back(value_cells(accuracy, *order[i]));
  }
  return grid;
}

Grid refused_grid(const Accuracy& accuracy) {
  Grid grid{{{"Row", "", false}, {"Why", "", false}}, {}};
  for (const JudgedValue& value : accuracy.values) {
    if (value.predicted) continue;
    grid.rows.push_back({{name_of(accuracy, value)}, {printable(value.problem, kLongestProblem)}});
  }
  return grid;
}

Grid value_grid(const Accuracy& accuracy) {
  Grid grid = empty_value_grid();
  for (const JudgedValue& value : accuracy.values) {
    grid.rows.push_back(value_cells(accuracy, value));
  }
  return grid;
}

std::string accuracy_table(const Accuracy& accuracy, const TableStyle& style, bool all_rows) {
  std::string text =
      all_rows ? "All\n" + lay_out(value_grid(accuracy), style)
               : "Furthest off\n" + lay_out(worst_grid(accuracy, kWorstOnTerminal), style);
  const Grid refused = refused_grid(accuracy);
  if (!refused.rows.empty()) text += "\nRefused\n" + lay_out(refused, style);
  text += "\n" + lay_out(accuracy_grid(accuracy), style) + "\n";
  for (const std::string& line : wrap(accuracy_note(), static_cast<std::size_t>(style.width))) {
    text += line + "\n";
  }
  return text + "\n" + accuracy_totals(accuracy);
}

std::string accuracy_markdown(const Accuracy& accuracy, const std::string& command,
                              const std::string& date) {
  std::string text =
      "# Predictions against published measurements\n\nWritten by `" + command + "` on " + date +
      ". Every row, with its configuration, is on the page that `--html` writes and "
      "in the JSON.\n\n## For planners\n\n" +
      markdown_table(planner_grid(accuracy)) + "\n" + planner_note() + "\n\n## Other programs\n\n" +
      markdown_table(rival_grid(accuracy)) + "\n" + rival_note() + "\n\n## Every table\n\n" +
      markdown_table(accuracy_grid(accuracy)) + "\n" + accuracy_note() + "\n\n" +
      accuracy_totals(accuracy) + "\n## Furthest off\n\n" +
      markdown_table(worst_grid(accuracy, kWorstInFile));
  const Grid refused = refused_grid(accuracy);
  if (!refused.rows.empty()) text += "\n## Refused\n\n" + markdown_table(refused);
  return text + "\n## Sources\n\n" + sources_markdown(accuracy);
}

}  // namespace interlock
