// Reads columns and rows of a measured table, and makes the scenario of each row.
// SPDX-License-Identifier: Apache-2.0
#include "validate/published/measured_rows.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "scenarios/contract/set_key.h"

namespace interlock {
namespace {

using Kind = JsonValue::Kind;

constexpr double kMostMeasured = 1e18;
constexpr double kMostFlops = 1e30;

/// A column of a table, by what it holds.
struct MeasuredColumn {
  enum class Role { Word, Flops, Candidates, Measured, Path };
  Role role = Role::Path;
  std::string name;
  std::string MeasuredRow::*word = nullptr;  // Word
  Measurand what = Measurand::StepTime;      // Measured
};

struct WordColumn {
  const char* name;
  std::string MeasuredRow::*word;
};
constexpr WordColumn kWords[] = {{"id", &MeasuredRow::id},
                                 {"series", &MeasuredRow::series},
                                 {"group", &MeasuredRow::group},
                                 {"base", &MeasuredRow::base},
                                 {"note", &MeasuredRow::note}};

std::optional<MeasuredColumn> read_column(const JsonNode& node, Diagnostics& diagnostics) {
  const std::optional<std::string> name = read_text(node, diagnostics);
  if (!name) return std::nullopt;
  MeasuredColumn column{.name = *name};
  for (const WordColumn& known : kWords) {
    if (*name != known.name) continue;
    column.role = MeasuredColumn::Role::Word;
    column.word = known.word;
  }
  if (*name == "flops_per_step") column.role = MeasuredColumn::Role::Flops;
  if (*name == "candidates") column.role = MeasuredColumn::Role::Candidates;
  constexpr std::string_view kPrefix = "measured.";
  if (!name->starts_with(kPrefix)) return column;
  const auto& names = measurand_names();
  const auto found = std::find(names.begin(), names.end(), name->substr(kPrefix.size()));
  if (found == names.end()) {
    report(diagnostics, node, "unknown quantity; expected measured. and " + join_choices(names));
    return std::nullopt;
  }
  column.role = MeasuredColumn::Role::Measured;
  column.what = static_cast<Measurand>(found - names.begin());
  return column;
}

/// Nothing if any column is wrong: rows would then mean nothing.
std::vector<MeasuredColumn> read_columns(const JsonNode& node, Diagnostics& diagnostics) {
  std::vector<MeasuredColumn> columns;
  if (node.value->kind != Kind::Array) {
    report(diagnostics, node, "expected a list of paths");
    return {};
  }
  std::set<std::string> names;
  bool measured = false;
  for (std::size_t i = 0; i < node.value->items.size(); ++i) {
    const auto column = read_column(node.item(i), diagnostics);
    if (!column) return {};
    if (!names.insert(column->name).second) {
      report(diagnostics, node.item(i), "a second column " + in_quotes(column->name));
      return {};
    }
    measured = measured || column->role == MeasuredColumn::Role::Measured;
    columns.push_back(*column);
  }
  if (names.count("id") && measured) return columns;
  report(diagnostics, node, "expected a column \"id\", and one that begins with \"measured.\"");
  return {};
}

void set_path(JsonValue& document, const std::string& path, const JsonNode& value,
              Diagnostics& diagnostics) {
  try {
    set_key(document, path, *value.value, in_quotes(path));
  } catch (const Error& error) {
    report(diagnostics, value, error.what());
  }
}

/// {"name": {"path": value, ...}, ...}
void read_candidates(const JsonNode& node, MeasuredRow& row, Diagnostics& diagnostics) {
  if (node.value->kind != Kind::Object) {
    return report(diagnostics, node, "expected an object from names to {\"path\": value}");
  }
  for (const JsonMember& member : node.value->members) {
    const JsonNode keys = node.child(member.first);
    CandidateScenario candidate{member.first, row.document};
    if (member.second.kind != Kind::Object) report(diagnostics, keys, "expected {\"path\": value}");
    for (const JsonMember& key : member.second.members) {
      set_path(candidate.document, key.first, keys.child(key.first), diagnostics);
    }
    row.candidates.push_back(std::move(candidate));
  }
}

void set_cell(const MeasuredColumn& column, const JsonNode& cell, MeasuredRow& row,
              Diagnostics& diagnostics) {
  const bool empty = cell.value->kind == Kind::Null;
  switch (column.role) {
    case MeasuredColumn::Role::Word:
      if (!empty) row.*column.word = read_text(cell, diagnostics).value_or("");
      return;
    case MeasuredColumn::Role::Flops:
      if (!empty) row.flops_per_step = read_number(cell, 1, kMostFlops, diagnostics).value_or(0);
      return;
    case MeasuredColumn::Role::Measured:
      if (empty) return;
      if (const auto value = read_number(cell, 0, kMostMeasured, diagnostics)) {
        if (*value > 0) row.measured[column.what] = *value;
        if (*value == 0) report(diagnostics, cell, "expected more than 0, or null: not measured");
      }
      return;
    case MeasuredColumn::Role::Candidates:
      return;  // when everything else is set
    case MeasuredColumn::Role::Path:
      set_path(row.document, column.name, cell, diagnostics);
  }
}

std::optional<MeasuredRow> read_row(const JsonNode& node, const JsonValue& scenario,
                                    const std::vector<MeasuredColumn>& columns,
                                    Diagnostics& diagnostics) {
  if (node.value->kind != Kind::Array || node.value->items.size() != columns.size()) {
    report(diagnostics, node,
           "expected a list of " + std::to_string(columns.size()) + " values, one a column");
    return std::nullopt;
  }
  MeasuredRow row{.document = scenario};
  row.document.line = node.value->line;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    set_cell(columns[i], node.item(i), row, diagnostics);
  }
  JsonValue name{.kind = Kind::String, .text = row.id, .file = node.value->file};
  set_json(row.document, "name", name, "id");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const bool open = columns[i].role == MeasuredColumn::Role::Candidates &&
                      node.item(i).value->kind != Kind::Null;
    if (open) read_candidates(node.item(i), row, diagnostics);
  }
  return row;
}

MeasuredRow* find_row(MeasuredTable& table, const std::string& id) {
  for (MeasuredRow& row : table.rows) {
    if (row.id == id) return &row;
  }
  return nullptr;
}

/// Returns true if a rule of "fitted" names the row: {"column": value, ...}.
bool matches(const JsonValue& rule, const JsonValue& cells, const std::vector<std::string>& names) {
  return std::all_of(rule.members.begin(), rule.members.end(), [&](const JsonMember& member) {
    const auto at = std::find(names.begin(), names.end(), member.first) - names.begin();
    const JsonValue& cell = cells.items[static_cast<std::size_t>(at)];
    const auto equal = [&](const JsonValue& value) {
      return value.kind == cell.kind && value.text == cell.text && value.number == cell.number &&
             value.boolean == cell.boolean;
    };
    if (member.second.kind != Kind::Array) return equal(member.second);
    return std::any_of(member.second.items.begin(), member.second.items.end(), equal);
  });
}

/// The rows that "fitted" and "remarks" refer to.
struct TableRows {
  MeasuredTable& table;
  std::vector<std::string> columns;
  JsonNode cells;
};

void mark_by_rule(const JsonNode& rule, const std::string& parameters, const TableRows& rows,
                  Diagnostics& diagnostics) {
  for (const JsonMember& member : rule.value->members) {
    if (std::count(rows.columns.begin(), rows.columns.end(), member.first)) continue;
    report(diagnostics, rule, "no column " + in_quotes(member.first));
    return;
  }
  for (std::size_t i = 0; i < rows.table.rows.size(); ++i) {
    if (matches(*rule.value, rows.cells.value->items[i], rows.columns)) {
      rows.table.rows[i].fitted = parameters;
    }
  }
}

void read_fit(const JsonNode& node, const TableRows& rows, Diagnostics& diagnostics) {
  ObjectReader reader(node, diagnostics);
  reader.require("parameters", "which parameters were fitted");
  const std::string parameters = reader.text("parameters", "");
  const auto which = reader.require("rows", "\"all\", a list of ids, or {\"column\": value}");
  if (which && which->value->kind == Kind::Object) {
    mark_by_rule(*which, parameters, rows, diagnostics);
  } else if (which && which->value->kind == Kind::Array) {
    for (std::size_t i = 0; i < which->value->items.size(); ++i) {
      const std::string id = read_text(which->item(i), diagnostics).value_or("");
      MeasuredRow* row = find_row(rows.table, id);
      if (row == nullptr) report(diagnostics, which->item(i), "no row " + in_quotes(id));
      if (row != nullptr) row->fitted = parameters;
    }
  } else if (which && read_choice(*which, {"all"}, diagnostics)) {
    for (MeasuredRow& row : rows.table.rows) row.fitted = parameters;
  }
  reader.finish();
}

void read_fits(const JsonNode& node, const TableRows& rows, Diagnostics& diagnostics) {
  if (node.value->kind != Kind::Array) {
    report(diagnostics, node, "expected a list of {\"parameters\", \"rows\"}");
    return;
  }
  for (std::size_t i = 0; i < node.value->items.size(); ++i) {
    read_fit(node.item(i), rows, diagnostics);
  }
}

/// Marks the rows of a list of ids as those that ran out of memory.
void read_failed(const JsonNode& node, MeasuredTable& table, Diagnostics& diagnostics) {
  if (node.value->kind != Kind::Array) return report(diagnostics, node, "expected a list of ids");
  for (std::size_t i = 0; i < node.value->items.size(); ++i) {
    const std::string id = read_text(node.item(i), diagnostics).value_or("");
    MeasuredRow* row = find_row(table, id);
    if (row == nullptr) {
      report(diagnostics, node.item(i), "no row " + in_quotes(id));
    } else if (!row->measured.empty()) {
      report(diagnostics, node.item(i), "was measured; expected a row that did not run");
    } else {
      row->out_of_memory = true;
    }
  }
}

void read_remarks(const JsonNode& node, MeasuredTable& table, Diagnostics& diagnostics) {
  if (node.value->kind != Kind::Object) {
    report(diagnostics, node, "expected an object from ids to remarks");
    return;
  }
  for (const JsonMember& member : node.value->members) {
    MeasuredRow* row = find_row(table, member.first);
    if (row == nullptr) {
      report(diagnostics, node.child(member.first), "no row " + in_quotes(member.first));
    } else {
      row->remark = read_text(node.child(member.first), diagnostics).value_or("");
    }
  }
}

/// Checks what rows must have besides what their columns say.
void check_row(const JsonNode& node, const MeasuredRow& row, MeasuredTable& table,
               Diagnostics& diagnostics) {
  if (row.id.empty()) report(diagnostics, node, "expected an id");
  if (!row.id.empty() && find_row(table, row.id) != &row) {
    report(diagnostics, node, "a second row " + in_quotes(row.id));
  }
  if (row.measured.count(Measurand::TflopsPerDevice) && row.flops_per_step == 0) {
    report(diagnostics, node, "tflops_per_device needs flops_per_step, as the source counts them");
  }
  const bool compares = std::any_of(row.measured.begin(), row.measured.end(),
                                    [](const auto& value) { return needs_base(value.first); });
  if (compares && (row.base.empty() || find_row(table, row.base) == nullptr)) {
    report(diagnostics, node, "is compared with a base; expected the id of a row of the table");
  }
}

}  // namespace

void read_rows(ObjectReader& reader, MeasuredTable& table) {
  Diagnostics& diagnostics = reader.diagnostics();
  const auto scenario = reader.require("scenario", "the scenario that all rows begin with");
  const auto columns_node = reader.require("columns", "a list of paths");
  const auto rows_node = reader.require("rows", "a list of rows");
  const auto fitted = reader.get("fitted"), remarks = reader.get("remarks");
  const auto failed = reader.get("out_of_memory");
  if (!scenario || !columns_node || !rows_node) return;
  if (scenario->value->kind != Kind::Object) {
    return report(diagnostics, *scenario, "expected a scenario");
  }
  if (rows_node->value->kind != Kind::Array || rows_node->value->items.empty()) {
    return report(diagnostics, *rows_node, "expected a list of rows");
  }
  const std::vector<MeasuredColumn> columns = read_columns(*columns_node, diagnostics);
  if (columns.empty()) return;
  for (std::size_t i = 0; i < rows_node->value->items.size(); ++i) {
    auto row = read_row(rows_node->item(i), *scenario->value, columns, diagnostics);
    if (row) table.rows.push_back(std::move(*row));
  }
  if (table.rows.size() != rows_node->value->items.size()) return;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    check_row(rows_node->item(i), table.rows[i], table, diagnostics);
  }
  TableRows rows{table, {}, *rows_node};
  for (const MeasuredColumn& column : columns) rows.columns.push_back(column.name);
  if (fitted) read_fits(*fitted, rows, diagnostics);
  if (remarks) read_remarks(*remarks, table, diagnostics);
  if (failed) read_failed(*failed, table, diagnostics);
}

}  // namespace interlock
